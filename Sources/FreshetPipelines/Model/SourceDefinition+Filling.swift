/// Replaces the placeholders of a source by values.
extension SourceDefinition {
    /// The source with values instead of its placeholders: percent-encoded in a URL (``URLTemplate``), encoded for
    /// their context in header fields, a body and the arguments of a command (``TextTemplate``). A placeholder
    /// without a value is an error in a URL and stays unchanged elsewhere.
    package func filled(_ value: (URLTemplate.Placeholder) -> String?) throws(RunFailure) -> SourceDefinition {
        do throws(PlaceholderError) {
            return try filling(value)
        } catch {
            throw RunFailure(.local, error.sentence)
        }
    }

    private func filling(_ value: (URLTemplate.Placeholder) -> String?) throws(PlaceholderError) -> SourceDefinition {
        switch self {
        case .http(var source):
            source.url = try Self.url(source.url, value)
            if var mirrors = source.mirrors {
                for index in mirrors.list.indices {
                    mirrors.list[index].url = try Self.url(mirrors.list[index].url, value)
                }
                source.mirrors = mirrors
            }
            for index in source.headers.indices {
                guard case .text(let text) = source.headers[index].value else { continue }
                let name = source.headers[index].name
                source.headers[index].value = .text(try Self.text(text, as: .header, value) { .header(name, $0) })
            }
            if case .post(let body, let contentType) = source.method,
                let kind = TextTemplate.Kind(contentType: contentType)
            {
                source.method = .post(
                    body: try Self.text(body, as: kind, value, PlaceholderError.body), contentType: contentType)
            }
            return .http(source)
        case .command(let arguments):
            // The program itself has no placeholders.
            var filled = Array(arguments.prefix(1))
            for argument in arguments.dropFirst() {
                filled.append(try Self.text(argument, as: .argument, value, PlaceholderError.argument))
            }
            return .command(filled)
        case .file, .copy, .joined:
            return self
        }
    }

    private static func url(
        _ url: String, _ value: (URLTemplate.Placeholder) -> String?
    ) throws(PlaceholderError) -> String {
        // A URL without a brace needs no parsing.
        guard url.utf8.contains(UInt8(ascii: "{")) else { return url }
        do throws(URLTemplate.ValidationError) {
            if let placeholder = URLTemplate.whole(url) {
                guard let text = value(placeholder) else { throw .missing(placeholder) }
                return text
            }
            return try URLTemplate(url).url(value)
        } catch {
            throw .url(error)
        }
    }

    private static func text(
        _ text: String, as kind: TextTemplate.Kind, _ value: (URLTemplate.Placeholder) -> String?,
        _ placeholderError: (TextTemplate.ValidationError) -> PlaceholderError
    ) throws(PlaceholderError) -> String {
        guard text.utf8.contains(UInt8(ascii: "{")) else { return text }
        do throws(TextTemplate.ValidationError) {
            return try TextTemplate(text, as: kind).filled(value)
        } catch {
            throw placeholderError(error)
        }
    }

    /// Why these values are invalid together: the parameter, if a single one is, and the rest of a sentence whose
    /// subject is the parameter. Placeholders that name no parameter count as valid.
    package func error(with values: ParameterValues) -> (parameter: String?, error: String)? {
        do throws(PlaceholderError) {
            // `0` is valid everywhere.
            _ = try filling { values.value($0) ?? "0" }
            return nil
        } catch {
            return error.ofParameter
        }
    }
}

/// Why a value is invalid, and where the placeholder is.
enum PlaceholderError: Error, Hashable {
    case url(URLTemplate.ValidationError)
    /// - Parameter name: the name of the header field.
    case header(String, TextTemplate.ValidationError)
    case body(TextTemplate.ValidationError)
    case argument(TextTemplate.ValidationError)

    /// A message without the value, which may be a secret.
    var sentence: String {
        switch self {
        case .url(let error): "the source's URL \(error.sentence)"
        case .header(let name, let error): "the header '\(name)' \(error.sentence)"
        case .body(let error): "the body of the request \(error.sentence)"
        case .argument(let error): "an argument \(error.sentence)"
        }
    }

    /// The parameter, if a single one is invalid, and the rest of a sentence whose subject is the parameter.
    fileprivate var ofParameter: (parameter: String?, error: String) {
        switch self {
        case .url(.notASegment(let placeholder, _)):
            (placeholder.name, "would make a segment of the URL's path empty, '.' or '..', which is another path")
        case .url(.tooLong(let limit)): (nil, "would make the URL longer than \(limit) bytes")
        case .url(let error): (nil, "stands in a URL that \(error.sentence)")
        case .header(let name, .notInHeader(let placeholder)):
            (placeholder.name, "cannot stand in the header '\(name)', which is one line of ASCII")
        case .header(let name, .tooLong(let limit)):
            (nil, "would make the header '\(name)' longer than \(limit) bytes")
        case .body(.notAJSONValue(let placeholder)):
            (
                placeholder.name,
                "stands in the body outside of quotation marks, and has to be a number, true, false or null there"
            )
        case .body(.tooLong(let limit)): (nil, "would make the body longer than \(limit) bytes")
        case .header(_, let error), .body(let error), .argument(let error): (nil, "stands in what \(error.sentence)")
        }
    }
}

extension TextTemplate.ValidationError {
    /// The rest of a sentence whose subject is the text. It quotes no value.
    fileprivate var sentence: String {
        switch self {
        case .notInHeader(let placeholder):
            "has a line break or a non-ASCII character at '{\(placeholder)}'; it must be one line of ASCII"
        case .notAJSONValue(let placeholder):
            "has '{\(placeholder)}' outside of quotation marks, and its value is not a number, true, false or null: "
                + "write quotation marks around it"
        case .tooLong(let limit): "is longer than \(limit) bytes with its values"
        }
    }
}

extension PipelineDefinition {
    /// Why these values are invalid together, in any source of the pipeline.
    package func error(with values: ParameterValues) -> (parameter: String?, error: String)? {
        (sources + check.proofSources.map(SourceDefinition.http)).lazy.compactMap { $0.error(with: values) }.first
    }
}

extension URLTemplate.ValidationError {
    /// The rest of a sentence whose subject is the URL. It does not quote the value, which may be a secret.
    package var sentence: String {
        switch self {
        case .unbalanced: "has an unbalanced brace"
        case .notAName: "has braces around text that is not a name"
        case .beforePath(let placeholder): "has the placeholder '{\(placeholder)}' before its path"
        case .missing(let placeholder): "has no value for '{\(placeholder)}'"
        case .notASegment(let placeholder, _):
            "has a path segment that is empty, '.' or '..' with the value of '{\(placeholder)}'"
        case .tooLong(let limit): "is longer than \(limit) bytes with its values"
        }
    }
}
