import FreshetVarlink

extension ControlMessage.Results {
    /// The same JSON as `VarlinkParameters(encoding:)`, in a tenth of its instructions: a thousand pipelines that run
    /// together have a thousand such replies.
    func parameters() throws -> VarlinkParameters {
        guard waiting == nil, let json else { return try VarlinkParameters(encoding: self) }
        return VarlinkParameters(json: json)
    }

    /// Nil: a text has characters that are written in a special way.
    private var json: [UInt8]? {
        var json = Array("{\"results\":[".utf8)
        json.reserveCapacity(160)
        for result in results {
            if json.last == UInt8(ascii: "}") { json.append(UInt8(ascii: ",")) }
            guard result.write(to: &json) else { return nil }
        }
        json += "]}".utf8
        return json
    }
}

extension RefreshResult {
    /// Appends the JSON object. Returns false if a text has control characters.
    fileprivate func write(to json: inout [UInt8]) -> Bool {
        guard [name, failure, tryLater?.reason].allSatisfy({ $0?.utf8.allSatisfy { $0 >= 0x20 } ?? true }) else {
            return false
        }
        json.append(UInt8(ascii: "{"))
        // Keys are sorted.
        json.append("behind", behind)
        json.append("durationUSec", durationUSec)
        json.append("failure", failure)
        json.append("generation", generation)
        json.append("name", name)
        json.append("outcome", outcome?.rawValue)
        json.append("run", run)
        json.append("size", size)
        if let tryLater {
            json.append(key: "tryLater")
            json.append(UInt8(ascii: "{"))
            json.append("reason", tryLater.reason)
            json.append("until", tryLater.until)
            json.append(UInt8(ascii: "}"))
        }
        json.append(UInt8(ascii: "}"))
        return true
    }
}

/// Members of a JSON object. A member without a value is left out.
extension [UInt8] {
    fileprivate mutating func append(key: StaticString) {
        if last != UInt8(ascii: "{") { append(UInt8(ascii: ",")) }
        append(UInt8(ascii: "\""))
        key.withUTF8Buffer { append(contentsOf: $0) }
        append(UInt8(ascii: "\""))
        append(UInt8(ascii: ":"))
    }

    fileprivate mutating func append(_ key: StaticString, _ value: Int64?) {
        guard let value else { return }
        append(key: key)
        self += String(value).utf8
    }

    fileprivate mutating func append(_ key: StaticString, _ value: Bool?) {
        guard let value else { return }
        append(key: key)
        self += (value ? "true" : "false").utf8
    }

    fileprivate mutating func append(_ key: StaticString, _ value: String?) {
        guard let value else { return }
        append(key: key)
        append(jsonString: value)
    }
}
