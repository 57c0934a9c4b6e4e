import Synchronization

/// The interface `org.varlink.service` of every server: the server's identity and the descriptions of its interfaces.
enum ServiceInterface {
    static let description = """
        # Methods that every Varlink service has.
        interface org.varlink.service

        # The identity of the service, and its interfaces.
        method GetInfo() -> (
          vendor: string,
          product: string,
          version: string,
          url: string,
          interfaces: []string
        )

        # The description of an interface, such as this one.
        method GetInterfaceDescription(interface: string) -> (description: string)

        # There is no such interface.
        error InterfaceNotFound (interface: string)

        # The interface has no such method.
        error MethodNotFound (method: string)

        # The interface has the method, but the service does not implement it.
        error MethodNotImplemented (method: string)

        # A parameter is missing, unknown, or not acceptable.
        error InvalidParameter (parameter: string)

        # The caller may not do this.
        error PermissionDenied ()

        # The method must be called with more.
        error ExpectedMore ()

        """

    private struct Info: Encodable {
        var vendor: String
        var product: String
        var version: String
        var url: String
        var interfaces: [String]
    }

    /// The reply to `GetInfo`. It never changes, so it is encoded once: at the first call, because the first use of an
    /// encoder takes longer than the rest of a server's start.
    private final class InfoReply: Sendable {
        private let info: Info
        private let encoded = Mutex<VarlinkParameters?>(nil)

        init(_ info: Info) { self.info = info }

        func parameters() throws -> VarlinkParameters {
            try encoded.withLock { encoded in
                if let encoded { return encoded }
                let new = try VarlinkParameters(encoding: info)
                encoded = new
                return new
            }
        }
    }

    private struct Interface: Decodable {
        var interface: String
    }

    private struct Description: Encodable {
        var description: String
    }

    static func make(
        _ identity: VarlinkServer.Identity, interfaces: [VarlinkInterface]
    ) throws(VarlinkInterface.ValidationError) -> VarlinkInterface {
        var descriptions = Dictionary(interfaces.map { ($0.name, $0.description) }) { _, last in last }
        descriptions["org.varlink.service"] = description
        let texts = descriptions
        let info = Info(
            vendor: identity.vendor, product: identity.product, version: identity.version, url: identity.url,
            interfaces: texts.keys.sorted())
        let reply = InfoReply(info)
        return try VarlinkInterface(
            description: description,
            methods: [
                "GetInterfaceDescription": { call in
                    let name = try call.parameters.decode(as: Interface.self).interface
                    guard let text = texts[name] else { throw VarlinkErrorReply.interfaceNotFound(name) }
                    return try VarlinkParameters(encoding: Description(description: text))
                }
            ], immediateMethods: ["GetInfo": { _ in try reply.parameters() }])
    }
}
