/// A marble diagram: the events of a time line, as characters.
///
/// Tests, documentation and commands use the same notation. A diagram is read from left to right. Each of these takes
/// one frame of time:
/// | text | meaning |
/// | --- | --- |
/// | `-` | nothing happens in this frame |
/// | `a` | an element with this name: a letter or a digit, except `x` |
/// | `{name}` | an element with a longer name; the name may have any character except braces |
/// | `\|` | the end |
/// | `x` | the end with a failure |
/// | `^` | the consumer calls `next()` |
/// | `!` | the consumer is cancelled |
/// | `(ab\|)` | all these events in one frame, in this order |
/// | ` ` | nothing, takes no time: to align diagrams |
///
/// The first frame is number 0. So `-a(bc)|` means: `a` in frame 1, `b` and `c` in frame 2, the end in frame 3. Two
/// diagrams are equal if they have the same events in the same frames; empty frames at the end are ignored.
public struct Marbles: Sendable, Hashable, CustomStringConvertible, ExpressibleByStringLiteral {
    /// An event in a frame.
    public enum Event: Sendable, Hashable {
        /// An element.
        case element(String)
        /// The end.
        case end
        /// The end with a failure.
        case failure
        /// The consumer calls `next()`.
        case request
        /// The consumer is cancelled.
        case cancel
    }

    /// An event with its frame.
    public struct Mark: Sendable, Hashable {
        /// The number of the frame, from 0.
        public let frame: Int
        /// The event.
        public let event: Event

        /// Makes a mark.
        public init(frame: Int, event: Event) {
            self.frame = frame
            self.event = event
        }
    }

    /// The events, in order.
    public let marks: [Mark]
    /// The number of frames, including empty frames at the end.
    public let frames: Int

    /// Makes a diagram from events.
    ///
    /// - Parameters:
    ///   - marks: The events, in the order of their frames.
    ///   - frames: The minimum number of frames.
    public init(marks: [Mark], frames: Int = 0) {
        self.marks = marks
        self.frames = max(frames, (marks.last?.frame ?? -1) + 1)
    }

    /// Parses a diagram.
    ///
    /// - Throws: ``MarbleSyntaxError``, with the position and the reason.
    public init(_ text: String) throws(MarbleSyntaxError) {
        var parser = MarbleParser(text)
        self = try parser.parse()
    }

    /// A diagram as a literal in the source of a test. An invalid one traps, like an invalid literal of any other type.
    public init(stringLiteral text: String) {
        do {
            try self.init(text)
        } catch {
            preconditionFailure("\(error)")  // safe: a literal in the test itself
        }
    }

    /// Two diagrams are equal if they have the same events in the same frames.
    public static func == (left: Marbles, right: Marbles) -> Bool {
        left.marks == right.marks
    }

    /// Hashes the events.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(marks)
    }

    /// The diagram as text.
    public var description: String {
        var text = ""
        var rest = marks[...]
        for frame in 0..<frames {
            let events = rest.prefix { $0.frame == frame }.map(\.event)
            rest = rest.dropFirst(events.count)
            switch events.count {
            case 0: text += "-"
            case 1: text += events[0].text
            default: text += "(" + events.map(\.text).joined() + ")"
            }
        }
        return text
    }
}

extension Marbles.Event {
    fileprivate var text: String {
        switch self {
        case .element(let name):
            if let only = name.first, name.count == 1, only.isMarbleName { name } else { "{\(name)}" }
        case .end: "|"
        case .failure: "x"
        case .request: "^"
        case .cancel: "!"
        }
    }
}

extension Character {
    fileprivate var isMarbleName: Bool {
        isASCII && (isLetter || isNumber) && self != "x"
    }
}

/// A text that is not a marble diagram.
public struct MarbleSyntaxError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The text.
    public let text: String
    /// The position of the error: the number of characters before it.
    public let offset: Int
    /// The error, and how to correct it.
    public let reason: String

    /// The diagram with a caret below the position, and the reason.
    public var description: String {
        "not a marble diagram: \(reason)\n\(text)\n\(String(repeating: " ", count: offset))^"
    }
}

/// Parses one diagram.
private struct MarbleParser {
    private let text: String
    private let characters: [Character]
    private var position = 0
    private var marks: [Marbles.Mark] = []
    private var frame = 0

    init(_ text: String) {
        self.text = text
        characters = Array(text)
    }

    mutating func parse() throws(MarbleSyntaxError) -> Marbles {
        while position < characters.count {
            switch characters[position] {
            case " ":
                position += 1
            case "-":
                position += 1
                frame += 1
            case "(":
                try parseGroup()
                frame += 1
            default:
                try parseEvent()
                frame += 1
            }
        }
        return Marbles(marks: marks, frames: frame)
    }

    private mutating func parseGroup() throws(MarbleSyntaxError) {
        let start = position
        position += 1
        while true {
            guard position < characters.count else { throw error(at: start, "the group is not closed; add a ')'") }
            switch characters[position] {
            case ")":
                position += 1
                return
            case " ":
                position += 1
            case "-":
                throw error(at: position, "a group is one frame; put '-' outside the group")
            case "(":
                throw error(at: position, "a group cannot contain a group; write all events in one group")
            default:
                try parseEvent()
            }
        }
    }

    private mutating func parseEvent() throws(MarbleSyntaxError) {
        let event: Marbles.Event
        let character = characters[position]
        switch character {
        case "|": event = .end
        case "x": event = .failure
        case "^": event = .request
        case "!": event = .cancel
        case "{":
            let start = position
            guard let close = characters[start...].firstIndex(of: "}") else {
                throw error(at: start, "the name is not closed; add a '}'")
            }
            let name = String(characters[(start + 1)..<close])
            guard !name.isEmpty, !name.contains("{") else {
                throw error(at: start, "a name in braces must not be empty or contain a brace")
            }
            position = close
            event = .element(name)
        case _ where character.isMarbleName:
            event = .element(String(character))
        default:
            throw error(at: position, "'\(character)' has no meaning; write longer names in braces")
        }
        position += 1
        marks.append(Marbles.Mark(frame: frame, event: event))
    }

    private func error(at offset: Int, _ reason: String) -> MarbleSyntaxError {
        MarbleSyntaxError(text: text, offset: offset, reason: reason)
    }
}
