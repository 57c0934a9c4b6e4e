/// An interface of a server: its description, and handlers for its methods.
///
/// ```swift
/// let interface = try VarlinkInterface(
///     description: """
///         # Greets.
///         interface org.example.greeter
///         method Greet(name: string) -> (greeting: string)
///
///         """,
///     methods: ["Greet": { call in
///         let name = try call.parameters.decode(as: Name.self).name
///         return try VarlinkParameters(encoding: Greeting(greeting: "Hello, \(name)."))
///     }])
/// ```
///
/// The server itself answers calls that do not match the description (an unknown method or parameter).
public struct VarlinkInterface: Sendable {
    /// Answers one call. It returns the last or only reply. If it throws a ``VarlinkErrorReply``, this error is the
    /// reply; for any other error the reply is `io.systemd.System`.
    ///
    /// Its task is cancelled when the client goes away or the server stops; its result is ignored then.
    public typealias Handler = @Sendable (VarlinkCall) async throws -> VarlinkParameters

    /// Answers a call like ``Handler``, but without waiting, on the loop's thread: such a call needs no task. For methods
    /// whose answer takes some microseconds.
    public typealias ImmediateHandler = @Sendable (VarlinkCall) throws -> VarlinkParameters

    /// The description and the handlers do not match, or the description is invalid; the text says why.
    public struct ValidationError: Error, Hashable, Sendable, CustomStringConvertible {
        public var description: String
    }

    /// The name, such as `org.example.greeter`.
    public let name: String
    /// The text in the interface definition language.
    public let description: String
    let methods: [String: Handler]
    let immediateMethods: [String: ImmediateHandler]
    /// The parameters that each described method has.
    let parameters: [String: [String]]

    /// - Parameters:
    ///   - description: in Varlink's own language.
    ///   - methods: handlers by the names of methods without the interface. A described method without a handler is
    ///     answered with `MethodNotImplemented`; a handler without a described method is an error.
    ///   - immediateMethods: handlers of further methods, which do not wait.
    public init(
        description: String, methods: [String: Handler], immediateMethods: [String: ImmediateHandler] = [:]
    ) throws(ValidationError) {
        let parsed: InterfaceDescription
        do {
            parsed = try InterfaceDescription(parsing: description)
        } catch {
            throw ValidationError(description: error.description)
        }
        if let stray = (Array(methods.keys) + immediateMethods.keys).sorted().first(where: { parsed.methods[$0] == nil }
        ) {
            throw ValidationError(description: "the method '\(stray)' is not in the description of '\(parsed.name)'")
        }
        name = parsed.name
        self.description = description
        self.methods = methods
        self.immediateMethods = immediateMethods
        parameters = parsed.methods
    }
}
