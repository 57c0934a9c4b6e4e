/// Values at the places of a source.
extension SourceDefinition {
    /// The source with values at its places: percent-encoded in a URL (``URLTemplate``), as the place wants it in header
    /// fields, a body and the arguments of a command (``TextTemplate``). What has no value stays as it is, and is a failure
    /// in a URL.
    package func filled(_ value: (URLTemplate.Place) -> String?) throws(RunFailure) -> SourceDefinition {
        do throws(PlaceError) {
            return try filling(value)
        } catch {
            throw RunFailure(.local, error.sentence)
        }
    }

    private func filling(_ value: (URLTemplate.Place) -> String?) throws(PlaceError) -> SourceDefinition {
        switch self {
        case .http(var source):
            source.url = try Self.url(source.url, value)
            for index in source.headers.indices {
                guard case .text(let text) = source.headers[index].value else { continue }
                let name = source.headers[index].name
                source.headers[index].value = .text(try Self.text(text, as: .header, value) { .header(name, $0) })
            }
            if case .post(let body, let contentType) = source.method,
                let kind = TextTemplate.Kind(contentType: contentType)
            {
                source.method = .post(
                    body: try Self.text(body, as: kind, value, PlaceError.body), contentType: contentType)
            }
            return .http(source)
        case .command(let arguments):
            // The program itself depends on no value.
            var filled = Array(arguments.prefix(1))
            for argument in arguments.dropFirst() {
                filled.append(try Self.text(argument, as: .argument, value, PlaceError.argument))
            }
            return .command(filled)
        case .file, .copy, .joined:
            return self
        }
    }

    private static func url(
        _ url: String, _ value: (URLTemplate.Place) -> String?
    ) throws(PlaceError) -> String {
        // Without a place nothing has to be taken apart.
        guard url.utf8.contains(UInt8(ascii: "{")) else { return url }
        do throws(URLTemplate.ValidationError) {
            if let place = URLTemplate.whole(url) {
                guard let text = value(place) else { throw .missing(place) }
                return text
            }
            return try URLTemplate(url).url(value)
        } catch {
            throw .url(error)
        }
    }

    private static func text(
        _ text: String, as kind: TextTemplate.Kind, _ value: (URLTemplate.Place) -> String?,
        _ fault: (TextTemplate.ValidationError) -> PlaceError
    ) throws(PlaceError) -> String {
        guard text.utf8.contains(UInt8(ascii: "{")) else { return text }
        do throws(TextTemplate.ValidationError) {
            return try TextTemplate(text, as: kind).filled(value)
        } catch {
            throw fault(error)
        }
    }

    /// What is wrong with these values together: the parameter, if it is one's, and the rest of a sentence that begins
    /// with it. Places that are none of a parameter count as filled well.
    package func fault(with values: ParameterValues) -> (parameter: String?, fault: String)? {
        do throws(PlaceError) {
            // Good anywhere.
            _ = try filling { values.value($0) ?? "0" }
            return nil
        } catch {
            return error.ofParameter
        }
    }
}

/// What is wrong with a value, and where it would stand.
enum PlaceError: Error, Hashable {
    case url(URLTemplate.ValidationError)
    /// - Parameter name: the header field's.
    case header(String, TextTemplate.ValidationError)
    case body(TextTemplate.ValidationError)
    case argument(TextTemplate.ValidationError)

    /// It quotes no value: that may be a secret.
    var sentence: String {
        switch self {
        case .url(let fault): "the source's URL \(fault.sentence)"
        case .header(let name, let fault): "the header '\(name)' \(fault.sentence)"
        case .body(let fault): "the body of the request \(fault.sentence)"
        case .argument(let fault): "an argument \(fault.sentence)"
        }
    }

    /// The parameter, if it is one's fault, and the rest of a sentence that begins with it.
    fileprivate var ofParameter: (parameter: String?, fault: String) {
        switch self {
        case .url(.notASegment(let place, _)):
            (place.name, "would make a part of the URL's path empty, '.' or '..', which is another path")
        case .url(.tooLong(let limit)): (nil, "would make the URL longer than \(limit) bytes")
        case .url(let fault): (nil, "stands in a URL that \(fault.sentence)")
        case .header(let name, .notInHeader(let place)):
            (place.name, "cannot stand in the header '\(name)', which is one line of ASCII")
        case .header(let name, .tooLong(let limit)):
            (nil, "would make the header '\(name)' longer than \(limit) bytes")
        case .body(.notAJSONValue(let place)):
            (
                place.name,
                "stands in the body outside of quotation marks, and has to be a number, true, false or null there"
            )
        case .body(.tooLong(let limit)): (nil, "would make the body longer than \(limit) bytes")
        case .header(_, let fault), .body(let fault), .argument(let fault): (nil, "stands in what \(fault.sentence)")
        }
    }
}

extension TextTemplate.ValidationError {
    /// The rest of a sentence that begins with the text. It quotes no value.
    fileprivate var sentence: String {
        switch self {
        case .notInHeader(let place):
            "would have a line break or a character that is not ASCII at '{\(place)}': it is one line of ASCII"
        case .notAJSONValue(let place):
            "has '{\(place)}' outside of quotation marks, and its value is no number, true, false or null: write "
                + "quotation marks around it"
        case .tooLong(let limit): "is longer than \(limit) bytes with its values"
        }
    }
}

extension PipelineDefinition {
    /// What is wrong with these values together, in any of its sources.
    package func fault(with values: ParameterValues) -> (parameter: String?, fault: String)? {
        (sources + check.proofSources.map(SourceDefinition.http)).lazy.compactMap { $0.fault(with: values) }.first
    }
}

extension URLTemplate.ValidationError {
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
