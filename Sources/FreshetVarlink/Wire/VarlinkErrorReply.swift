/// An error reply of a server: a name with its interface, and parameters.
///
/// A handler throws it, and a client's call throws the received error reply.
public struct VarlinkErrorReply: Error, Hashable, Sendable, CustomStringConvertible {
    /// The name, such as `org.varlink.service.MethodNotFound`.
    public var name: String
    public var parameters: VarlinkParameters

    public init(_ name: String, parameters: VarlinkParameters = .none) {
        self.name = name
        self.parameters = parameters
    }

    public var description: String {
        parameters == .none ? name : "\(name) \(String(decoding: parameters.json, as: UTF8.self))"
    }
}

extension VarlinkErrorReply {
    /// The names of the errors that every server may answer with.
    public enum Name {
        public static let interfaceNotFound = "org.varlink.service.InterfaceNotFound"
        public static let methodNotFound = "org.varlink.service.MethodNotFound"
        public static let methodNotImplemented = "org.varlink.service.MethodNotImplemented"
        public static let invalidParameter = "org.varlink.service.InvalidParameter"
        public static let permissionDenied = "org.varlink.service.PermissionDenied"
        public static let expectedMore = "org.varlink.service.ExpectedMore"
        /// systemd's name for an error that the interface does not foresee.
        public static let system = "io.systemd.System"
    }

    /// There is no interface of this name.
    public static func interfaceNotFound(_ interface: String) -> Self {
        Self(Name.interfaceNotFound, text: "interface", interface)
    }

    /// The interface has no such method; `method` is the name in the call, with the interface.
    public static func methodNotFound(_ method: String) -> Self {
        Self(Name.methodNotFound, text: "method", method)
    }

    /// The interface describes the method, but this server does not implement it.
    public static func methodNotImplemented(_ method: String) -> Self {
        Self(Name.methodNotImplemented, text: "method", method)
    }

    /// A parameter is missing, unknown, or not acceptable.
    public static func invalidParameter(_ parameter: String) -> Self {
        Self(Name.invalidParameter, text: "parameter", parameter)
    }

    /// The peer's user may not do this.
    public static let permissionDenied = Self(Name.permissionDenied)

    /// The method answers with a stream, so it has to be called with `more`.
    public static let expectedMore = Self(Name.expectedMore)

    private init(_ name: String, text key: String, _ value: String) {
        var json = Array("{\"\(key)\":".utf8)
        json.append(jsonString: value)
        json.append(UInt8(ascii: "}"))
        self.init(name, parameters: VarlinkParameters(json: json))
    }
}
