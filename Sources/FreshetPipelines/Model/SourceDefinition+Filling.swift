/// Values at the places of a source.
extension SourceDefinition {
    /// The source with values at its places: percent-encoded in a URL (``URLTemplate``), as they are in the arguments of
    /// a command, of which each stays one. What has no value stays as it is in an argument, and is a failure in a URL.
    package func filled(_ value: (URLTemplate.Place) -> String?) throws(RunFailure) -> SourceDefinition {
        do throws(URLTemplate.Fault) {
            return try filling(value)
        } catch {
            throw RunFailure(.local, "the source's URL \(error.sentence)")
        }
    }

    private func filling(_ value: (URLTemplate.Place) -> String?) throws(URLTemplate.Fault) -> SourceDefinition {
        switch self {
        case .http(var source):
            // Without a place nothing has to be taken apart.
            guard source.url.utf8.contains(UInt8(ascii: "{")) else { return self }
            source.url = try URLTemplate(source.url).url(value)
            return .http(source)
        case .command(let arguments):
            // The program itself depends on no value.
            return .command(arguments.prefix(1) + arguments.dropFirst().map { Self.filled($0, value) })
        case .file, .copy, .joined:
            return self
        }
    }

    private static func filled(_ argument: String, _ value: (URLTemplate.Place) -> String?) -> String {
        var result = ""
        var rest = argument[...]
        while let brace = rest.firstIndex(of: "{") {
            result += rest[..<brace]
            rest = rest[brace...]
            if let end = rest.firstIndex(of: "}"),
                let place = URLTemplate.Place(named: rest[rest.index(after: brace)..<end]), let text = value(place)
            {
                result += text
                rest = rest[rest.index(after: end)...]
            } else {
                result += "{"
                rest = rest.dropFirst()
            }
        }
        return result + rest
    }
}

extension URLTemplate.Fault {
    /// The rest of a sentence that begins with the URL. It quotes no value: that may be a secret.
    package var sentence: String {
        switch self {
        case .unbalanced: "has a brace without its other one"
        case .notAName: "has braces around something that is no name"
        case .beforePath(let place): "would have another host with another '\(place)'"
        case .missing(let place): "needs a value for '\(place)', and there is none"
        case .notASegment(let place, _):
            "would be another one: with its value, '\(place)' leaves a part of the path empty, '.' or '..'"
        case .tooLong(let limit): "is longer than \(limit) bytes with its values"
        }
    }
}
