import CYAML

/// The event parser of libyaml for a buffer. No other code uses libyaml's C types.
struct YAMLParser: ~Copyable {
    /// One event, with the positions where it begins and ends. Lines and columns count from 1.
    struct Event {
        var kind: Kind
        var start: (line: Int, column: Int)
        var end: (line: Int, column: Int)
        /// Where it is in the text, counted in Unicode scalars.
        var range: Range<Int>
        /// Whether it has an anchor (`&name`), or is an alias (`*name`).
        var isAnchored = false
        /// Whether it has a tag (`!name`).
        var isTagged = false
    }

    enum Kind {
        case documentStart(hasDirectives: Bool)
        case scalar(Node.Scalar)
        case sequenceStart, mappingStart
        /// The end of a sequence or mapping.
        case collectionEnd
        case alias
        /// An event without meaning for a reader of one document.
        case other
        case streamEnd
    }

    /// An error of the YAML syntax.
    struct YAMLSyntaxError: Error {
        var problem: String
        /// The construct that was being parsed, such as "while parsing a block mapping", and the line where it begins.
        var context: (words: String, line: Int)?
        var place: Place

        enum Place {
            case mark(line: Int, column: Int)
            case byte(Int)
        }
    }

    /// The parser is at a fixed address, because libyaml keeps pointers into it.
    private let parser: UnsafeMutablePointer<yaml_parser_t>

    /// Creates a parser for bytes that must outlive it; nil if there is not enough memory for its buffers.
    init?(over bytes: UnsafeBufferPointer<UInt8>) {
        parser = .allocate(capacity: 1)
        guard yaml_parser_initialize(parser) == 1 else {
            parser.deallocate()
            return nil
        }
        yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
        yaml_parser_set_input_string(parser, bytes.baseAddress, bytes.count)
    }

    deinit {
        yaml_parser_delete(parser)
        parser.deallocate()
    }

    /// The next event. Must not be called again after `streamEnd` or an error.
    mutating func next() throws(YAMLSyntaxError) -> Event {
        var event = yaml_event_t()
        guard yaml_parser_parse(parser, &event) == 1 else { throw error() }
        defer { yaml_event_delete(&event) }
        // safe: an event does not end before it begins; max() costs nothing.
        let range = event.start_mark.index..<max(event.start_mark.index, event.end_mark.index)
        var result = Event(
            kind: .other, start: Self.place(event.start_mark), end: Self.place(event.end_mark), range: range)
        switch event.type {
        case YAML_DOCUMENT_START_EVENT:
            let document = event.data.document_start
            result.kind = .documentStart(
                hasDirectives: document.version_directive != nil
                    || document.tag_directives.start != document.tag_directives.end)
        case YAML_SCALAR_EVENT:
            let scalar = event.data.scalar
            let bytes = UnsafeBufferPointer(start: scalar.value, count: scalar.length)
            result.kind = .scalar(
                Node.Scalar(
                    text: String(decoding: bytes, as: UTF8.self), isPlain: scalar.style == YAML_PLAIN_SCALAR_STYLE))
            result.isAnchored = scalar.anchor != nil
            result.isTagged = scalar.tag != nil
        case YAML_SEQUENCE_START_EVENT:
            result.kind = .sequenceStart
            result.isAnchored = event.data.sequence_start.anchor != nil
            result.isTagged = event.data.sequence_start.tag != nil
        case YAML_MAPPING_START_EVENT:
            result.kind = .mappingStart
            result.isAnchored = event.data.mapping_start.anchor != nil
            result.isTagged = event.data.mapping_start.tag != nil
        case YAML_SEQUENCE_END_EVENT, YAML_MAPPING_END_EVENT:
            result.kind = .collectionEnd
        case YAML_ALIAS_EVENT:
            result.kind = .alias
            result.isAnchored = true
        case YAML_STREAM_END_EVENT:
            result.kind = .streamEnd
        default:
            break
        }
        return result
    }

    private func error() -> YAMLSyntaxError {
        let value = parser.pointee
        let problem = value.problem.map { String(cString: $0) } ?? "out of memory"
        if value.error == YAML_READER_ERROR {
            return YAMLSyntaxError(problem: problem, place: .byte(value.problem_offset))
        }
        let place = Self.place(value.problem_mark)
        return YAMLSyntaxError(
            problem: problem,
            context: value.context.map { (String(cString: $0), Self.place(value.context_mark).line) },
            place: .mark(line: place.line, column: place.column))
    }

    private static func place(_ mark: yaml_mark_t) -> (line: Int, column: Int) { (mark.line + 1, mark.column + 1) }
}
