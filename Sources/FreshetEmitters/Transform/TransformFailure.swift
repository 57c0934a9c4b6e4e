import FreshetEventLoop
import FreshetJQ
import FreshetPipelines
import Glibc

/// The failures of requests to a jq helper, in words.
///
/// The cost of a failure is bounded by ``FreshetJQ/JQReply/maxMessage``, whatever the helper sends.
enum TransformFailure {
    /// - Parameter what: what is too long; the beginning of a sentence.
    static func tooLong(_ what: String, _ limit: Int) -> RunFailure {
        RunFailure(.content, "\(what) has more than the \(Text.grouped(UInt64(limit))) bytes that are possible")
    }

    /// The failure that a reply states; nil: the reply states none. The bytes of a reply without a failure are not read.
    static func of(_ reply: JQReply, to request: JQRequest) -> RunFailure? {
        switch reply.status {
        case .done:
            nil
        case .invalidProgram:
            RunFailure(.content, "the jq program is not valid: \(words(of: reply))")
        case .failed:
            RunFailure(.content, "the jq program failed: \(words(of: reply))")
        case .invalidInput where request.isText:
            RunFailure(.content, "the content cannot be read as text ('format: text'): \(words(of: reply))")
        case .invalidInput:
            RunFailure(.content, "the input of the jq program is not JSON: \(words(of: reply))")
        case .outputTooLarge:
            tooLong("the output of the jq program", Int(clamping: request.maxOutput))
        case .notConfined:
            RunFailure(.local, "the jq helper could not be confined (\(words(of: reply))), and so runs no program")
        }
    }

    /// The failure of a request whose helper ended without a reply.
    static func of(_ exit: ChildProcess.Exit, at request: JQRequest) -> RunFailure {
        switch exit {
        case .signalled(SIGXCPU):
            RunFailure(.content, "\(request.name) took more than \(JQHelper.processorLimit) s of processor time")
        case .signalled(SIGSYS):
            RunFailure(
                .content, "\(request.name) was ended, as its helper made a system call that its sandbox forbids")
        default:
            // libjq calls abort(3) when memory has run out, and when it finds itself in a state that cannot be.
            RunFailure(
                .content,
                "\(request.name) ran out of memory or crashed (\(JQHelper.memoryLimit >> 20) MiB are allowed): "
                    + "its helper \(exit)")
        }
    }

    /// The failure of a request whose helper probably passed its limit.
    ///
    /// - Parameter limit: bytes.
    static func outOfMemory(_ exit: ChildProcess.Exit, at request: JQRequest, limit: UInt64) -> RunFailure {
        RunFailure(
            .content,
            "\(request.name) ran out of memory or crashed: its helper \(exit); with \(limit >> 20) MiB it had all that "
                + "memory.max leaves beside \(Text.grouped(UInt64(request.input.count))) bytes of input; raise memory.max in "
                + "freshet.yaml, or lower check.max-bytes to reject such content")
    }

    /// The message of a reply, fit for a terminal and a journal. A helper sends no longer ones; the rest is left out.
    static func words(of reply: JQReply) -> String { Text.escaped(reply.bytes.prefix(JQReply.maxMessage)) }
}

extension JQRequest {
    /// The form for people that it asks about; nil: it has a jq program.
    private var form: String? {
        guard purpose == .form else { return nil }
        return BinaryForm(rawValue: program)?.name ?? program
    }

    /// What is done for it.
    fileprivate var name: String { form.map { "reading it as \($0)" } ?? "the jq program" }

    var nameOfInput: String {
        form.map { "what is to be read as \($0)" } ?? "the input of the jq program"
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
