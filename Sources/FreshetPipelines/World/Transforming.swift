/// Runs jq programs over untrusted data, in a separate process. The daemon itself does not parse the data: it gets the
/// outputs of programs and handles them as bytes.
///
/// A program gets each JSON text of its input, one after the other; or a text once, as one string, without a byte order
/// mark at its beginning.
package protocol Transforming: Sendable {
    /// The outputs of a program, one after the other, each as JSON text followed by a newline.
    ///
    /// - Parameter format: the format of the input.
    func transform(
        _ input: [UInt8], in format: ContentFormat, by program: String, variables: [JQVariable]
    ) async throws(FetchError) -> [UInt8]
    /// The outputs of a program as separate values: a string as its content, anything else as compact JSON.
    func values(
        of input: [UInt8], in format: ContentFormat, by program: String, variables: [JQVariable]
    ) async throws(FetchError) -> [[UInt8]]
    /// Whether the program's last output is neither `false` nor `null`.
    func holds(_ predicate: String, for input: [UInt8], in format: ContentFormat) async throws(FetchError) -> Bool
    /// The text that a template makes of one JSON text.
    func render(_ input: [UInt8], by template: TemplateDefinition) async throws(FetchError) -> [UInt8]
    /// Validates a content in a format that jq cannot read, and counts its items.
    ///
    /// - Returns: nil if the format has no items.
    /// - Throws: why the content is invalid.
    func items(of content: [UInt8], as form: BinaryForm) async throws(FetchError) -> Int?
    /// The same transformer for the requests of one pipeline, so that slow programs of a pipeline do not block others.
    func share(of pipeline: UInt64) -> any Transforming
    /// The same transformer with the memory of a reservation, which must be held until the requests have ended.
    func using(_ memory: MemoryReservation) -> any Transforming
}

/// A content format that jq cannot read.
package enum BinaryForm: String, CaseIterable, Hashable, Sendable {
    case xml, pem, gzip
}

extension Transforming {
    package func share(of pipeline: UInt64) -> any Transforming { self }
    package func using(_ memory: MemoryReservation) -> any Transforming { self }

    package func transform(
        _ input: [UInt8], by program: String, variables: [JQVariable] = []
    ) async throws(FetchError) -> [UInt8] {
        try await transform(input, in: .json, by: program, variables: variables)
    }

    package func values(
        of input: [UInt8], by program: String, variables: [JQVariable]
    ) async throws(FetchError) -> [[UInt8]] {
        try await values(of: input, in: .json, by: program, variables: variables)
    }

    package func holds(_ predicate: String, for input: [UInt8]) async throws(FetchError) -> Bool {
        try await holds(predicate, for: input, in: .json)
    }

    /// The outputs of a program as a content, one line each: as JSON texts, or, for a text, strings as their content
    /// and everything else as JSON.
    ///
    /// - Parameters:
    ///   - form: the format of the input.
    ///   - format: the format of the content.
    func content(
        of input: [UInt8], in form: ContentFormat, by program: String, as format: ContentFormat
    ) async throws(FetchError) -> [UInt8] {
        switch format {
        case .json: return try await transform(input, in: form, by: program, variables: [])
        case .text:
            let lines = try await values(of: input, in: form, by: program, variables: [])
            var text: [UInt8] = []
            text.reserveCapacity(lines.reduce(0) { $0 + $1.count + 1 })
            for line in lines { text += line + [UInt8(ascii: "\n")] }
            return text
        }
    }
}

/// A variable of a jq program, `$name`.
package struct JQVariable: Hashable, Sendable {
    /// Letters, digits and `_`, no digit first. A configured name may have `-`, which is a minus in jq: it becomes `_`.
    package let name: String
    /// One trusted JSON text, made by jq or by Freshet.
    package let json: [UInt8]

    package init(_ name: String, json: [UInt8]) {
        self.name = Self.name(name)
        self.json = json
    }

    /// The name in jq's syntax.
    package static func name(_ name: String) -> String {
        String(name.map { $0 == "-" ? "_" : $0 })
    }

    /// The variables as one JSON object; empty without variables. Of two variables with one name the last is kept, as
    /// the innermost is in a program.
    package static func object(_ variables: [JQVariable]) -> [UInt8] {
        guard !variables.isEmpty else { return [] }
        var object = Array("{".utf8)
        for variable in variables {
            if object.count > 1 { object.append(UInt8(ascii: ",")) }
            object += Array("\"\(variable.name)\":".utf8) + variable.json
        }
        return object + Array("}".utf8)
    }
}
