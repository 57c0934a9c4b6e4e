/// The message of a call.
public struct VarlinkCallMessage: Hashable, Sendable {
    /// The method with its interface, such as `org.varlink.service.GetInfo`.
    public var method: String
    public var parameters: VarlinkParameters
    /// Whether the client takes several replies.
    public var more: Bool
    /// Whether the client takes no reply.
    public var oneway: Bool
    /// Whether the client requests another protocol on this connection after the reply.
    public var upgrade: Bool

    public init(
        method: String, parameters: VarlinkParameters = .none, more: Bool = false, oneway: Bool = false,
        upgrade: Bool = false
    ) {
        self.method = method
        self.parameters = parameters
        self.more = more
        self.oneway = oneway
        self.upgrade = upgrade
    }

    /// Parses a call from a message without its NUL.
    init(parsing bytes: [UInt8]) throws(VarlinkMessageError) {
        self.init(method: "")
        // This check must come before any text is compared; the scanner checks the names of members itself.
        let isSafe = StreamSafeText.isSafe(json: bytes)
        for member in try bytes.members() {
            guard isSafe || StreamSafeText.isSafe(json: Array(bytes[member.value])) else { throw .field(member.name) }
            switch member.name {
            case "method": method = try bytes.string(member)
            case "parameters":
                parameters = try bytes.parameters(member)
                // Its meaning would depend on the decoder.
                if parameters != .none, let name = JSONScanner.memberWithDuplicate(in: member.value, of: bytes) {
                    throw .field(name)
                }
            case "more": more = try bytes.flag(member)
            case "oneway": oneway = try bytes.flag(member)
            case "upgrade": upgrade = try bytes.flag(member)
            default: throw .field(member.name)
            }
        }
        if method.isEmpty { throw .field("method") }
        // No reply, several replies and another protocol after the reply exclude each other.
        if oneway && (more || upgrade) { throw .syntax }
    }

    /// The bytes of the message with the NUL. Flags that are false are left out.
    var encoded: [UInt8] {
        var bytes = Array("{\"method\":".utf8)
        bytes.append(jsonString: method)
        bytes += ",\"parameters\":".utf8
        bytes += parameters.json
        if more { bytes += ",\"more\":true".utf8 }
        if oneway { bytes += ",\"oneway\":true".utf8 }
        if upgrade { bytes += ",\"upgrade\":true".utf8 }
        bytes += [UInt8(ascii: "}"), 0]
        return bytes
    }
}

/// The message of a reply.
public struct VarlinkReplyMessage: Hashable, Sendable {
    public var parameters: VarlinkParameters
    /// Whether another reply to the same call follows.
    public var continues: Bool
    /// The name of the error with its interface; nil: the reply is not an error.
    public var error: String?

    public init(parameters: VarlinkParameters = .none, continues: Bool = false, error: String? = nil) {
        self.parameters = parameters
        self.continues = continues
        self.error = error
    }

    /// Parses a reply from a message without its NUL.
    init(parsing bytes: [UInt8]) throws(VarlinkMessageError) {
        self.init()
        for member in try bytes.members() {
            switch member.name {
            case "parameters": parameters = try bytes.parameters(member)
            case "continues": continues = try bytes.flag(member)
            case "error": error = bytes.isNull(member) ? nil : try bytes.string(member)
            // A newer server may send further members.
            default: continue
            }
        }
    }

    /// The bytes of the message with the NUL. Absent members are left out: other implementations refuse null.
    var encoded: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(parameters.json.count + (error?.utf8.count ?? 0) + 48)
        bytes.append(UInt8(ascii: "{"))
        if let error {
            bytes += "\"error\":".utf8
            bytes.append(jsonString: error)
            bytes.append(UInt8(ascii: ","))
        }
        bytes += "\"parameters\":".utf8
        bytes += parameters.json
        if continues { bytes += ",\"continues\":true".utf8 }
        bytes += [UInt8(ascii: "}"), 0]
        return bytes
    }
}

/// Why a message is not a valid Varlink message.
enum VarlinkMessageError: Error, Hashable {
    /// The message is not a JSON object, or its flags contradict each other.
    case syntax
    /// A member of the envelope is missing, unknown, or of the wrong type; or a parameter with this name occurs twice, or
    /// an object in its value has a name twice.
    case field(String)
}

extension [UInt8] {
    fileprivate func members() throws(VarlinkMessageError) -> [JSONScanner.Member] {
        do {
            return try JSONScanner.members(of: self)
        } catch {
            throw .syntax
        }
    }

    fileprivate func isNull(_ member: JSONScanner.Member) -> Bool {
        self[member.value.lowerBound] == UInt8(ascii: "n")
    }

    fileprivate func string(_ member: JSONScanner.Member) throws(VarlinkMessageError) -> String {
        guard let text = JSONScanner.string(member.value, of: self) else { throw .field(member.name) }
        return text
    }

    fileprivate func flag(_ member: JSONScanner.Member) throws(VarlinkMessageError) -> Bool {
        switch self[member.value.lowerBound] {
        case UInt8(ascii: "t"): return true
        case UInt8(ascii: "f"): return false
        default: throw .field(member.name)
        }
    }

    /// The parameters of a message. Null stands for no parameters: some clients send it.
    fileprivate func parameters(_ member: JSONScanner.Member) throws(VarlinkMessageError) -> VarlinkParameters {
        if isNull(member) { return .none }
        guard self[member.value.lowerBound] == UInt8(ascii: "{") else { throw .field(member.name) }
        return VarlinkParameters(json: Array(self[member.value]))
    }
}
