/// An interface that a server offers: its description and a handler for each of its methods.
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
/// The server answers calls that do not fit the description (an unknown method or parameter) by itself.
public struct VarlinkInterface: Sendable {
    /// Answers one call. What it returns is the last reply, or the only one. It may throw a ``VarlinkErrorReply``,
    /// which is the answer; another error is answered with `io.systemd.System`.
    ///
    /// Its task is cancelled when the client goes away or the server stops; what it returns then goes nowhere.
    public typealias Handler = @Sendable (VarlinkCall) async throws -> VarlinkParameters

    /// The description is not one that a server can work with: what is wrong, in a sentence for its author.
    public struct ValidationError: Error, Hashable, Sendable, CustomStringConvertible {
        public var description: String
    }

    /// Such as `org.example.greeter`.
    public let name: String
    /// The text in the interface definition language.
    public let description: String
    let methods: [String: Handler]
    /// The parameters that each described method has.
    let parameters: [String: [String]]

    /// - Parameters:
    ///   - description: in Varlink's own language.
    ///   - methods: by their names without the interface. A method that is described and has no handler is answered
    ///     with `MethodNotImplemented`; a handler that is not described is a fault.
    public init(description: String, methods: [String: Handler]) throws(ValidationError) {
        let parsed: InterfaceDescription
        do {
            parsed = try InterfaceDescription(parsing: description)
        } catch {
            throw ValidationError(description: error.description)
        }
        if let stray = methods.keys.sorted().first(where: { parsed.methods[$0] == nil }) {
            throw ValidationError(description: "the method '\(stray)' is not in the description of '\(parsed.name)'")
        }
        name = parsed.name
        self.description = description
        self.methods = methods
        parameters = parsed.methods
    }
}
