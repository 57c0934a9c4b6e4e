import FreshetEventLoop
import Glibc

/// Finds the handler of a call and turns its result or its error into the reply.
struct VarlinkRouter: Sendable {
    private enum Handler {
        case task(VarlinkInterface.Handler)
        case immediate(VarlinkInterface.ImmediateHandler)
    }

    private struct Method {
        let handler: Handler
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
            let handlers =
                Array(interface.methods.mapValues { Handler.task($0) })
                + interface.immediateMethods.mapValues { Handler.immediate($0) }
            for (name, handler) in handlers {
                guard let parameters = interface.parameters[name] else { continue }
                methods["\(interfaceName).\(name)"] = Method(handler: handler, parameters: parameters)
            }
        }
        self.methods = methods
    }

    /// The last reply to a call; nil: the call was cancelled.
    func answer(_ call: VarlinkCall, on loop: EventLoop) async -> VarlinkReplyMessage? {
        do {
            let handler = try handler(for: call)
            // The number of names is bounded: only methods of the interfaces have a handler.
            loop.nameJob(call.method)
            switch handler {
            case .task(let handler): return VarlinkReplyMessage(parameters: try await handler(call))
            case .immediate(let handler): return VarlinkReplyMessage(parameters: try handler(call))
            }
        } catch {
            return Self.reply(with: error)
        }
    }

    /// Whether a method has a handler that does not wait.
    func isImmediate(_ method: String) -> Bool {
        if case .immediate = methods[method]?.handler { true } else { false }
    }

    /// The reply to a call of a method that ``isImmediate(_:)``; nil for other methods.
    func answerImmediately(_ call: VarlinkCall) -> VarlinkReplyMessage? {
        do {
            guard case .immediate(let handler) = try handler(for: call) else { return nil }
            return VarlinkReplyMessage(parameters: try handler(call))
        } catch {
            return Self.reply(with: error)
        }
    }

    /// The reply to a call whose handler failed; nil: the call was cancelled.
    private static func reply(with error: any Error) -> VarlinkReplyMessage? {
        switch error {
        case let error as VarlinkErrorReply:
            return VarlinkReplyMessage(parameters: error.parameters, error: error.name)
        case is CancellationError: return nil
        default:
            let parameters = #"{"origin":"linux","errno":\#(EIO),"errnoName":"EIO"}"#
            return VarlinkReplyMessage(
                parameters: VarlinkParameters(json: Array(parameters.utf8)), error: VarlinkErrorReply.Name.system)
        }
    }

    private func handler(for call: VarlinkCall) throws(VarlinkErrorReply) -> Handler {
        guard let method = methods[call.method] else { throw error(for: call) }
        // Otherwise a misspelt parameter would count as a missing parameter.
        if call.parameters != .none, let stray = call.parameters.stray(besides: method.parameters) {
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
