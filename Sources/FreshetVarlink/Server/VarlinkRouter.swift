import FreshetEventLoop
import Glibc

/// Finds the handler of a call and turns its result or its error into the reply.
struct VarlinkRouter: Sendable {
    private struct Method {
        let handler: VarlinkInterface.Handler
        let parameters: [String]
    }

    private let interfaces: [String: VarlinkInterface]
    /// The methods that have a handler, by their names with the interface.
    private let methods: [String: Method]

    init(_ interfaces: [VarlinkInterface]) {
        // Of two interfaces with the same name the last one counts; the server's own interface is last.
        self.interfaces = Dictionary(interfaces.map { ($0.name, $0) }) { _, last in last }
        var methods: [String: Method] = [:]
        for (interfaceName, interface) in self.interfaces {
            for (name, handler) in interface.methods {
                guard let parameters = interface.parameters[name] else { continue }
                methods["\(interfaceName).\(name)"] = Method(handler: handler, parameters: parameters)
            }
        }
        self.methods = methods
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
        guard let method = methods[call.method] else { throw error(for: call) }
        // Otherwise a misspelt parameter would count as a missing parameter.
        if call.parameters != .none, let stray = call.parameters.names.first(where: { !method.parameters.contains($0) })
        {
            throw .invalidParameter(stray)
        }
        return method.handler
    }

    /// Why a call has no handler.
    private func error(for call: VarlinkCall) -> VarlinkErrorReply {
        guard let dot = call.method.lastIndex(of: ".") else { return .interfaceNotFound(call.method) }
        let interfaceName = String(call.method[..<dot])
        guard let interface = interfaces[interfaceName] else { return .interfaceNotFound(interfaceName) }
        let name = String(call.method[call.method.index(after: dot)...])
        return interface.parameters[name] == nil
            ? .methodNotFound(call.method) : .methodNotImplemented(call.method)
    }
}
