/// What a list and its items hold, without values being built of them.
extension JSONScanner {
    /// The places of the elements of the array that the whole text is.
    package static func elements(of bytes: [UInt8]) throws(SyntaxError) -> [Range<Int>] {
        do throws(UTF8.ValidationError) {
            _ = try UTF8Span(validating: bytes.span)
        } catch {
            throw SyntaxError(offset: error.byteOffsets.lowerBound)
        }
        var scanner = JSONScanner(bytes)
        var elements: [Range<Int>] = []
        scanner.skipSpace()
        try scanner.expect("[")
        scanner.skipSpace()
        if !scanner.take("]") {
            repeat {
                scanner.skipSpace()
                let start = scanner.position
                try scanner.value(depth: 1)
                elements.append(start..<scanner.position)
                scanner.skipSpace()
            } while scanner.take(",")
            try scanner.expect("]")
        }
        scanner.skipSpace()
        guard scanner.position == bytes.count else { throw SyntaxError(offset: scanner.position) }
        return elements
    }

    /// The place of a value inside another one, by the names that lead there; nil: there is none. Of a name that comes
    /// twice the last counts, as for most who read JSON.
    ///
    /// - Parameter outer: the place of a value that was passed before.
    package static func value(
        at path: some Collection<String>, in outer: Range<Int>, of bytes: [UInt8]
    ) throws(SyntaxError) -> Range<Int>? {
        guard let first = path.first else { return outer }
        guard bytes[outer.lowerBound] == UInt8(ascii: "{") else { return nil }
        var scanner = JSONScanner(bytes)
        scanner.position = outer.lowerBound
        var found: Range<Int>?
        try scanner.object(depth: 1) { name, value, scanner throws(SyntaxError) in
            // By bytes (RFC 8259, 8.3): a comparison of text may cost the square of its length.
            if try scanner.text(of: name).utf8.elementsEqual(first.utf8) { found = value }
        }
        return try found.flatMap { inner throws(SyntaxError) in
            try value(at: path.dropFirst(), in: inner, of: bytes)
        }
    }

    /// A value's text without space between its parts.
    ///
    /// - Parameter place: of a value that was passed before.
    package static func compact(_ place: Range<Int>, of bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(place.count)
        var isString = false
        var isEscaped = false
        for byte in bytes[place] {
            if isString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isString = false
                }
            } else if byte == UInt8(ascii: "\"") {
                isString = true
            } else if byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 {
                continue
            }
            result.append(byte)
        }
        return result
    }
}
