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
                    + "the memory limit is \(JQHelper.memoryLimit >> 20) MiB")
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
    fileprivate var name: String { form.map { "validating the content as \($0)" } ?? "the jq program" }

    var nameOfInput: String {
        form.map { "the content to validate as \($0)" } ?? "the input of the jq program"
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
