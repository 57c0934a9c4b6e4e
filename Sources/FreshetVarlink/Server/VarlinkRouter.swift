import FreshetEventLoop
import Glibc

/// Finds the handler of a call and turns its result or its error into the reply.
struct VarlinkRouter: Sendable {
    private let interfaces: [String: VarlinkInterface]

    init(_ interfaces: [VarlinkInterface]) {
        // Of two interfaces with the same name the last one counts; the server's own interface is last.
        self.interfaces = Dictionary(interfaces.map { ($0.name, $0) }) { _, last in last }
    }

    /// The last reply to a call; nil: the call was cancelled.
    func answer(_ call: VarlinkCall, on loop: EventLoop) async -> VarlinkReplyMessage? {
        do {
            return try await perform(call, on: loop)
        } catch let error as VarlinkErrorReply {
            return VarlinkReplyMessage(parameters: error.parameters, error: error.name)
        } catch is CancellationError {
            return nil
        } catch {
            let parameters = #"{"origin":"linux","errno":\#(EIO),"errnoName":"EIO"}"#
            return VarlinkReplyMessage(
                parameters: VarlinkParameters(json: Array(parameters.utf8)), error: VarlinkErrorReply.Name.system)
        }
    }

    private func perform(_ call: VarlinkCall, on loop: EventLoop) async throws -> VarlinkReplyMessage {
        let handler = try handler(for: call)
        // The number of names is bounded: only methods of the interfaces have a handler.
        loop.nameJob(call.method)
        return VarlinkReplyMessage(parameters: try await handler(call))
    }

    private func handler(for call: VarlinkCall) throws(VarlinkErrorReply) -> VarlinkInterface.Handler {
        guard let dot = call.method.lastIndex(of: ".") else { throw .interfaceNotFound(call.method) }
        let interfaceName = String(call.method[..<dot])
        guard let interface = interfaces[interfaceName] else { throw .interfaceNotFound(interfaceName) }
        let name = String(call.method[call.method.index(after: dot)...])
        guard let known = interface.parameters[name] else { throw .methodNotFound(call.method) }
        guard let handler = interface.methods[name] else { throw .methodNotImplemented(call.method) }
        // Otherwise a misspelt parameter would count as a missing parameter.
        if call.parameters != .none, let stray = call.parameters.names.first(where: { !known.contains($0) }) {
            throw .invalidParameter(stray)
        }
        return handler
    }
}
