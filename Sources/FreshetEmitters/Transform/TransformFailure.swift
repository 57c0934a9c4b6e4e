import FreshetEventLoop
import FreshetHelper
import FreshetJQ
import FreshetPipelines
import Glibc

/// Makes the failures of requests to a jq helper.
///
/// ``FreshetHelper/HelperReply/maxMessage`` bounds the cost of a failure, even if the helper sends a longer message.
enum TransformFailure {
    /// - Parameter subject: the data that is too long; the subject of the message.
    static func tooLong(_ subject: String, _ limit: Int) -> RunFailure {
        RunFailure(.content, "\(subject) exceeds the limit of \(Text.grouped(UInt64(limit))) bytes")
    }

    /// The failure that a reply reports; nil if the request succeeded. The bytes of a successful reply are not read.
    static func of(_ reply: HelperReply, to request: HelperRequest) -> RunFailure? {
        switch reply.status {
        case .done:
            nil
        case .invalidProgram:
            RunFailure(.content, "the jq program is not valid: \(message(of: reply))")
        case .failed:
            RunFailure(.content, "the jq program failed: \(message(of: reply))")
        case .invalidInput where request.isText:
            RunFailure(.content, "the content cannot be read as text ('format: text'): \(message(of: reply))")
        case .invalidInput:
            RunFailure(.content, "the input of the jq program is not JSON: \(message(of: reply))")
        case .outputTooLarge:
            tooLong("the output of the jq program", Int(clamping: request.maxOutput))
        case .notConfined:
            RunFailure(.local, "the jq helper could not set up its sandbox and ran no program: \(message(of: reply))")
        }
    }

    // MARK: Templates

    static func noInput(of template: TemplateDefinition) -> RunFailure {
        RunFailure(.content, "the template \(template.file) got no input: the jq program has no output")
    }

    /// The failure that the reply of a template helper reports; nil if the request succeeded.
    static func of(_ reply: HelperReply, rendering template: TemplateDefinition, _ maxOutput: UInt64) -> RunFailure? {
        switch reply.status {
        case .done: nil
        case .invalidProgram:
            RunFailure(.content, "the template is not valid: \(TemplateMessage(of: reply).text(in: template.file))")
        case .failed:
            RunFailure(.content, "the template failed: \(TemplateMessage(of: reply).text(in: template.file))")
        case .invalidInput:
            RunFailure(
                .content,
                "the input of the template \(template.file) is not one JSON text: \(TemplateMessage(of: reply).message)"
            )
        case .outputTooLarge: tooLong("the output of the template", Int(clamping: maxOutput))
        case .notConfined:
            RunFailure(
                .local, "the template helper could not set up its sandbox and rendered nothing: \(message(of: reply))")
        }
    }

    // MARK: Failures of helpers

    /// The failure of a request whose helper ended without a reply.
    static func of(_ exit: ChildProcess.Exit, at request: HelperRequest) -> RunFailure {
        switch exit {
        case .signalled(SIGXCPU):
            RunFailure(.content, "\(request.name) took more than \(JQHelper.processorLimit) s of processor time")
        case .signalled(SIGSYS):
            RunFailure(
                .content, "\(request.name) was stopped: its helper made a system call that the sandbox forbids")
        default:
            // libjq calls abort(3) when it is out of memory, and when an assertion fails.
            RunFailure(
                .content,
                "\(request.name) ran out of memory or crashed: its helper \(exit); "
                    + "the memory limit is \(request.memoryLimit >> 20) MiB")
        }
    }

    /// The failure of a request whose helper probably exceeded its memory limit.
    ///
    /// - Parameter limit: the memory limit, in bytes.
    static func outOfMemory(_ exit: ChildProcess.Exit, at request: HelperRequest, limit: UInt64) -> RunFailure {
        RunFailure(
            .content,
            "\(request.name) ran out of memory or crashed: its helper \(exit); memory.max leaves \(limit >> 20) MiB "
                + "for an input of \(Text.grouped(UInt64(request.input.count))) bytes; raise memory.max in "
                + "freshet.yaml, or lower check.max-bytes to reject such content")
    }

    /// The message of a reply, escaped for a terminal and a journal. It is truncated, because a helper must not send a
    /// longer message.
    static func message(of reply: HelperReply) -> String { Text.escaped(reply.bytes.prefix(HelperReply.maxMessage)) }
}

extension HelperRequest {
    /// The display name of the format that the helper validates; nil if the request has a jq program.
    private var form: String? {
        guard purpose == .form else { return nil }
        return BinaryForm(rawValue: program)?.name ?? program
    }

    /// The work of the request, as the subject of a message.
    var name: String { form.map { "validating the content as \($0)" } ?? "the \(nameOfProgram)" }

    var nameOfInput: String {
        form.map { "the content to validate as \($0)" } ?? "the input of the \(nameOfProgram)"
    }

    private var nameOfProgram: String { purpose == .template ? "template" : "jq program" }

    /// The memory of a helper that has no share of a budget, in bytes.
    fileprivate var memoryLimit: UInt64 {
        purpose == .template ? TemplateProgram.memoryLimit : JQHelper.memoryLimit
    }
}

/// A message about a template with its position, in a reply. Lines and columns count from 1, columns in Unicode
/// scalars.
package struct TemplateMessage: Hashable, Sendable {
    package var line: Int?
    package var column: Int?
    /// Escaped for a terminal and a journal.
    package var message: String

    init(_ message: String) { self.message = message }

    /// The line and the column precede the message in a reply; 0 stands for an unknown position.
    init(of reply: HelperReply) {
        let text = TransformFailure.message(of: reply)
        let parts = text.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let line = Int(parts[0]), let column = Int(parts[1]) else {
            message = text
            return
        }
        if line > 0, column > 0 { (self.line, self.column) = (line, column) }
        message = String(parts[2])
    }

    /// The message after the file and the position, in the form that editors open.
    func text(in file: String) -> String {
        guard let line, let column else { return "\(file): \(message)" }
        return "\(file):\(line):\(column): \(message)"
    }
}

extension BinaryForm {
    var name: String {
        switch self {
        case .xml: "well-formed XML"
        case .pem: "PEM"
        case .gzip: "gzip"
        }
    }
}
