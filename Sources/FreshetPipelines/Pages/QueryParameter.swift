/// A parameter in the query of a URL, `name=value`, encoded as in forms.
enum QueryParameter {
    /// The URL with this parameter, percent-encoded: it replaces a parameter of the same name, or follows the others.
    /// The other parameters stay unchanged.
    ///
    /// - Parameter url: absolute and without a fragment.
    static func setting(_ name: String, to value: String, in url: String) -> String {
        var parameter: [UInt8] = []
        URLTemplate.append(name, to: &parameter)
        parameter.append(UInt8(ascii: "="))
        URLTemplate.append(value, to: &parameter)

        let parts = url.utf8.split(separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
        var query: [[UInt8]] = []
        var isSet = false
        for other in parts.dropFirst().first?.split(separator: UInt8(ascii: "&")) ?? [] {
            guard decodedName(of: other) == Array(name.utf8) else {
                query.append(Array(other))
                continue
            }
            // A second parameter of the same name would contradict it, and is removed.
            if !isSet { query.append(parameter) }
            isSet = true
        }
        if !isSet { query.append(parameter) }
        let path = parts.first.map(Array.init) ?? []
        return String(
            decoding: path + [UInt8(ascii: "?")] + query.joined(separator: [UInt8(ascii: "&")]), as: UTF8.self)
    }

    private static func decodedName(of parameter: Substring.UTF8View) -> [UInt8] {
        var name: [UInt8] = []
        var rest = parameter.prefix { $0 != UInt8(ascii: "=") }
        while let byte = rest.popFirst() {
            let digits = rest.prefix(2)
            if byte == UInt8(ascii: "%"), digits.count == 2,
                let decoded = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            {
                name.append(decoded)
                rest = rest.dropFirst(2)
            } else {
                name.append(byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
            }
        }
        return name
    }
}
