/// Finds elements and members in arrays and objects without building values.
extension JSONScanner {
    /// The ranges of the elements of an array. The array must be the whole text.
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

    /// The outermost member of an object that occurs twice, or in whose value an object has a name twice; nil: there is
    /// none.
    ///
    /// - Parameter outer: the range of an object that was scanned before, and whose text is safe to compare.
    package static func memberWithDuplicate(in outer: Range<Int>, of bytes: [UInt8]) -> String? {
        var scanner = JSONScanner(bytes)
        scanner.position = outer.lowerBound
        // The names of each open object; nil for an array.
        var open: [Set<String>?] = []
        var outermost = ""
        while scanner.position < outer.upperBound {
            switch bytes[scanner.position] {
            case UInt8(ascii: "{"): open.append([])
            case UInt8(ascii: "["): open.append(nil)
            case UInt8(ascii: "}"), UInt8(ascii: "]"): open.removeLast()
            case UInt8(ascii: "\""):
                let start = scanner.position
                scanner.skipString()
                let end = scanner.position
                scanner.skipSpace()
                // Only a name has a colon after it.
                guard scanner.current == UInt8(ascii: ":"), let name = try? scanner.text(of: start..<end) else {
                    continue
                }
                if open.count == 1 { outermost = name }
                if open[open.count - 1]?.insert(name).inserted == false { return outermost }
                continue
            default: break
            }
            scanner.position += 1
        }
        return nil
    }

    /// Moves behind a string that was scanned before.
    private mutating func skipString() {
        position += 1
        while let byte = current, byte != UInt8(ascii: "\"") { position += byte == UInt8(ascii: "\\") ? 2 : 1 }
        position += 1
    }

    /// The range of a value inside another value, by a path of names; nil: no such value. If a name occurs twice, the
    /// last one counts, as in most JSON parsers.
    ///
    /// - Parameter outer: the range of a value that was scanned before.
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

    /// The text of a value without whitespace between its parts.
    ///
    /// - Parameter place: the range of a value that was scanned before.
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
