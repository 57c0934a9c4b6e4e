/// `org.varlink.service`, which every server offers: who it is, and what its interfaces look like.
enum ServiceInterface {
    static let description = """
        # What every Varlink service can be asked.
        interface org.varlink.service

        # Who the service is, and which interfaces it has.
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

        # The interface has the method, and the service does not.
        error MethodNotImplemented (method: string)

        # A parameter is missing, unknown, or not acceptable.
        error InvalidParameter (parameter: string)

        # The caller may not do this.
        error PermissionDenied ()

        # The method is to be called with more.
        error ExpectedMore ()

        """

    private struct Info: Encodable {
        var vendor: String
        var product: String
        var version: String
        var url: String
        var interfaces: [String]
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
        return try VarlinkInterface(
            description: description,
            methods: [
                "GetInfo": { _ in try VarlinkParameters(encoding: info) },
                "GetInterfaceDescription": { call in
                    let name = try call.parameters.decode(as: Interface.self).interface
                    guard let text = texts[name] else { throw VarlinkErrorReply.interfaceNotFound(name) }
                    return try VarlinkParameters(encoding: Description(description: text))
                },
            ])
    }
}
