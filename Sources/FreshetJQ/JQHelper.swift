package import FreshetHelper
import Glibc

/// The process in which jq programs run.
///
/// libjq cannot be interrupted, aborts its process if memory runs out, and runs programs that may loop and allocate
/// without end. So programs and the untrusted bodies that they read are processed in a separate process with few
/// rights: an environment that has only the time zone UTC, only the descriptors for input and output, limits on memory
/// and processor time, and a sandbox (``HelperSandbox``). If the helper takes too long, the process that started it
/// kills it and starts another helper.
///
/// jq 1.6 keeps numbers as IEEE doubles. An integer beyond 2^53 loses its last digits: 9007199254740993 becomes
/// 9007199254740992; a number beyond the range of doubles becomes 1.7976931348623157e+308. To keep such numbers exact,
/// do not transform the data, or let the origin send the numbers as strings.
package enum JQHelper {
    /// The command-line argument that makes a program run as a helper.
    package static let argument = "--jq-helper"
    /// The address space of a helper, in bytes.
    package static let memoryLimit: UInt64 = 512 << 20
    /// The most processor time of one request, in seconds.
    package static let processorLimit = HelperServer.processorLimit

    /// The environment with which a helper is started. The helper first replaces this environment by one that has only
    /// `TZ`, so that jq programs cannot read it.
    package static let environment = ["SWIFT_BACKTRACE": "enable=no"]

    /// Runs a helper on standard input and output until the input ends. Call it first in a new process.
    package static func main() -> Never {
        run(
            input: STDIN_FILENO, output: STDOUT_FILENO, limitsProcessorTime: true,
            confinement: Result { () throws(HelperSandbox.Failure) in try confine() })
        exit(0)
    }

    /// Serves requests one after the other until the input ends or contains an invalid request. Blocks.
    ///
    /// - Parameters:
    ///   - limitsProcessorTime: whether each request has at most ``processorLimit``; the limit applies to the whole
    ///     process.
    ///   - confinement: the result of confining the process. After a failure, every request gets the failure as its
    ///     reply, and no program runs.
    package static func run(
        input: Int32, output: Int32, limitsProcessorTime: Bool = false,
        confinement: Result<HelperSandbox.Gaps, HelperSandbox.Failure> = .success([])
    ) {
        var cache = ProgramCache()
        HelperServer.run(
            input: input, output: output, limitsProcessorTime: limitsProcessorTime, confinement: confinement
        ) { request in
            switch request.purpose {
            case .outputs, .verdict, .values: cache.reply(to: request)
            case .form: ContentProbe.reply(to: request)
            case .template: .message(.invalidProgram, "this helper does not render templates")
            }
        }
    }

    /// Confines this process permanently: sets its environment, its limits and its sandbox. The process must have one
    /// thread.
    ///
    /// - Returns: the parts of the sandbox that the kernel lacks.
    package static func confine() throws(HelperSandbox.Failure) -> HelperSandbox.Gaps {
        clearenv()
        // Local time is UTC: in zones with summer time, mktime of jq 1.6 is wrong by an hour during summer time, and so
        // are functions that use mktime, such as fromdate. TZ also makes the environment non-null: after clearenv(3)
        // alone, libjq's `env` crashes.
        setenv("TZ", "UTC0", 1)
        tzset()
        return try HelperServer.confine(memory: memoryLimit)
    }
}

extension ProgramCache {
    fileprivate mutating func reply(to request: HelperRequest) -> HelperReply {
        do throws(JQProgram.Invalid) {
            let variables = JQVariables(request.variables)
            return try program(request.program, variables: variables.names).run(
                request.purpose, over: request.input, isText: request.isText, with: variables,
                maxOutput: request.maxOutput)
        } catch {
            return .message(.invalidProgram, error.message)
        }
    }
}
