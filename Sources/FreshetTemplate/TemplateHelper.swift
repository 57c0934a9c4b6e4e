import CLinux
package import FreshetHelper
import Glibc
import Mustache
import Synchronization

/// The process in which templates are rendered.
///
/// swift-mustache imports Foundation, which `freshetd` does not link, and the input of a template is untrusted. So
/// templates are rendered in a program of their own, with few rights: only the descriptors for input and output, limits
/// on memory and processor time, and a sandbox (``FreshetHelper/HelperSandbox``).
package enum TemplateHelper {
    /// Runs a helper on standard input and output until the input ends. Call it first in a new process.
    package static func main() -> Never {
        // Only the parent's requests reach the memory, which has responses of origins.
        _ = freshet_prctl(PR_SET_DUMPABLE, 0)
        clearenv()
        setenv("TZ", "UTC0", 1)
        tzset()
        // Whatever the libraries initialize at their first use, they initialize before the sandbox.
        _ = reply(
            to: HelperRequest(.template, program: "{{#a}}{{.}}{{/a}}", input: Array(#"{"a":[1]}"#.utf8), maxOutput: 16))
        HelperServer.run(
            input: STDIN_FILENO, output: STDOUT_FILENO, limitsProcessorTime: true,
            confinement: Result { () throws(HelperSandbox.Failure) in
                try HelperServer.confine(memory: TemplateProgram.memoryLimit)
            }
        ) { reply(to: $0) }
        exit(0)
    }

    /// Renders a template, or only parses it if there is no input.
    ///
    /// The message of a failure begins with the line and the column in the template, which are 0 if they are unknown.
    package static func reply(to request: HelperRequest) -> HelperReply {
        guard request.purpose == .template else {
            return .message(.invalidProgram, "0 0 this helper only renders templates")
        }
        let name = request.variables.isEmpty ? "none" : String(decoding: request.variables, as: UTF8.self)
        guard let escape = Escape(rawValue: name) else {
            return .message(.invalidProgram, "0 0 unknown escape")
        }
        do throws(TemplateError) {
            let template = try Template(request.program, escape)
            if request.input.isEmpty { return HelperReply(.done) }
            let text = try template.render(request.input)
            guard UInt64(text.utf8.count) <= request.maxOutput else { return HelperReply(.outputTooLarge) }
            return HelperReply(.done, bytes: Array(text.utf8))
        } catch {
            return .message(error.status, error.text)
        }
    }
}

/// A template, parsed for one rendering.
struct Template {
    private let scanner: TagScanner
    private let template: MustacheTemplate
    private let rendering = Rendering()

    /// The name of the content type that escapes. swift-mustache finds content types by name when it parses, in one
    /// table of the process; a lock keeps two templates apart.
    private static let contentType = "FRESHET"
    private static let parsing = Mutex(())
    /// Selects the content type, on its own line, which swift-mustache removes.
    private static let preamble = "{{% CONTENT_TYPE:\(contentType)}}\n"

    init(_ text: String, _ escape: Escape) throws(TemplateError) {
        scanner = try TagScanner(text)
        let content = EscapedContent(escape: escape, rendering: rendering)
        do {
            template = try Self.parsing.withLock { _ in
                MustacheContentTypes.register(content, named: Self.contentType)
                return try MustacheTemplate(string: Self.preamble + text)
            }
        } catch let error as MustacheTemplate.ParserError {
            throw TemplateError(
                line: max(1, error.context.lineNumber - 1), column: error.context.columnNumber,
                message: "swift-mustache cannot read it: \(error.error)")
        } catch {
            throw TemplateError(line: 0, column: 0, message: "swift-mustache cannot read it: \(error)")
        }
    }

    func render(_ input: [UInt8]) throws(TemplateError) -> String {
        let json: JSONText
        do throws(JSONText.SyntaxError) {
            json = try JSONText(input)
        } catch {
            throw TemplateError(
                line: 0, column: 0, message: "\(error.message) (byte \(error.offset + 1))", status: .invalidInput)
        }
        let text = template.render(Root.make(Node(text: json, index: 0, name: ".", rendering: rendering)))
        guard let failure = rendering.failure else { return text }
        let tag = scanner.variable(failure.name)
        throw TemplateError(
            line: tag?.line ?? 0, column: tag?.column ?? 0, message: "'\(failure.name)' \(failure.reason)",
            status: .failed)
    }
}
