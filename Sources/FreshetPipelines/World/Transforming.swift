/// Runs jq programs over untrusted data, in a process of its own. The daemon itself parses none of it: it asks for what
/// it wants to know, and handles the answers as bytes.
///
/// A program is given each JSON text of its input, one after the other; or a text once, as one string, without the byte
/// order mark with which it may begin.
package protocol Transforming: Sendable {
    /// The outputs of a program, one after the other, each as JSON text followed by a newline.
    ///
    /// - Parameter format: how the input is written.
    func transform(
        _ input: [UInt8], in format: ContentFormat, by program: String, variables: [JQVariable]
    ) async throws(FetchError) -> [UInt8]
    /// The outputs of a program, each by itself: a string as its content, anything else as compact JSON.
    func values(
        of input: [UInt8], in format: ContentFormat, by program: String, variables: [JQVariable]
    ) async throws(FetchError) -> [[UInt8]]
    /// Whether the program's last output is neither `false` nor `null`.
    func holds(_ predicate: String, for input: [UInt8], in format: ContentFormat) async throws(FetchError) -> Bool
    /// Looks whether a content has a form that is none of jq's, and counts its items.
    ///
    /// - Returns: nil if there is no such thing as an item of it.
    /// - Throws: what is wrong with it.
    func items(of content: [UInt8], as form: BinaryForm) async throws(FetchError) -> Int?
    /// The same for the requests of one pipeline: a pipeline whose programs take long holds up no other.
    func share(of pipeline: UInt64) -> any Transforming
    /// The same with the memory of a reservation, which has to hold until the requests have ended.
    func using(_ memory: MemoryReservation) -> any Transforming
}

/// A form of contents that jq cannot read.
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

    /// The outputs of a program as a content: JSON texts; or as text strings as they are, and all else as JSON. Each has a
    /// line of its own.
    ///
    /// - Parameters:
    ///   - form: how the input is written.
    ///   - format: how the content is to be.
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

/// What a jq program finds as `$name`.
package struct JQVariable: Hashable, Sendable {
    /// Letters, digits and `_`, no digit first. A configuration's name may have `-`, which jq takes for a minus: it
    /// becomes `_`.
    package let name: String
    /// One JSON text, of a jq program's making or this program's own.
    package let json: [UInt8]

    package init(_ name: String, json: [UInt8]) {
        self.name = Self.name(name)
        self.json = json
    }

    /// As jq can say it.
    package static func name(_ name: String) -> String {
        String(name.map { $0 == "-" ? "_" : $0 })
    }

    /// All of them as the members of one JSON object; nothing for none. Of two with one name the last counts, as the
    /// innermost does in a program.
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
