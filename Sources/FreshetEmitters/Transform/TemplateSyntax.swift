import FreshetEventLoop
import FreshetHelper
import FreshetJQ
package import FreshetPipelines
import Glibc

/// Whether templates can be parsed, for short-lived processes without an event loop. The daemon asks a helper with
/// ``JQEvaluating/error(in:)``.
package enum TemplateSyntax {
    /// The longest wait for a helper, in seconds: far more than the 60 s of processor time that it may use.
    private static let patience = 120

    /// The error in a template; nil if there is none, or if no helper could be asked. Blocks: it starts a helper.
    ///
    /// - Parameter program: the program that renders templates; nil: the installed one.
    package static func error(in template: TemplateDefinition, program: String? = nil) -> TemplateMessage? {
        guard let path = program ?? TemplateProgram.path() else { return nil }
        let request = HelperRequest(
            .template, program: template.text, variables: Array(template.escape.rawValue.utf8), input: [], maxOutput: 0)
        guard let (child, socket) = start(path) else { return nil }
        let reply = exchange(request, socket)
        kill(child, SIGKILL)
        while waitpid(child, nil, 0) < 0 && errno == EINTR {}
        guard let reply else { return TemplateMessage("the helper that parses it crashed") }
        return reply.status == .invalidProgram ? TemplateMessage(of: reply) : nil
    }

    /// Starts a helper. Only the helper keeps its end of the socket, so that its end is noticed.
    private static func start(_ path: String) -> (pid_t, OwnedDescriptor)? {
        guard let (ours, theirs) = try? SocketPair.make() else { return nil }
        defer { withExtendedLifetime(theirs) {} }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, theirs.rawValue, STDIN_FILENO)
        posix_spawn_file_actions_adddup2(&actions, theirs.rawValue, STDOUT_FILENO)
        let variables = JQHelper.environment.map { "\($0.key)=\($0.value)" }
        var arguments: [UnsafeMutablePointer<CChar>?] = [strdup(path), strdup(TemplateProgram.argument), nil]
        var environment: [UnsafeMutablePointer<CChar>?] = variables.map { strdup($0) }
        environment.append(nil)
        defer { for text in arguments + environment { free(text) } }
        var child = pid_t()
        return posix_spawn(&child, path, &actions, nil, &arguments, &environment) == 0 ? (child, ours) : nil
    }

    private static func exchange(_ request: HelperRequest, _ socket: OwnedDescriptor) -> HelperReply? {
        var limit = timeval(tv_sec: patience, tv_usec: 0)
        setsockopt(socket.rawValue, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var rest = request.head[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(socket.rawValue, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return nil }
            rest = rest.dropFirst(count)
        }
        var decoder = HelperReply.Decoder(maxOutput: 0)
        var buffer = [UInt8](repeating: 0, count: 4 << 10)
        while true {
            let count = recv(socket.rawValue, &buffer, buffer.count, 0)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return nil }
            do throws(HelperReply.Decoder.InvalidReply) {
                if let reply = try decoder.take(buffer[..<count]) { return reply }
            } catch {
                return nil
            }
        }
    }
}
