/// A marble diagram: what happens on a time line, in characters.
///
/// One notation for tests, documentation and commands. A diagram is read from left to right, and each of these takes
/// one frame of time:
///
/// | text | meaning |
/// | --- | --- |
/// | `-` | nothing happens in this frame |
/// | `a` | an element with this name: a letter or a digit, but `x` |
/// | `{name}` | an element with a longer name: anything but braces |
/// | `\|` | the end |
/// | `x` | the end with a failure |
/// | `^` | the consumer begins, or asks |
/// | `!` | the consumer is cancelled |
/// | `(ab\|)` | all of these in one frame, in this order |
/// | ` ` | nothing, not even time: to align diagrams below one another |
///
/// The first frame is number 0. So `-a(bc)|` is: `a` in frame 1, `b` and `c` in frame 2, the end in frame 3. Two
/// diagrams are equal if the same happens in the same frames; quiet frames at the end are of no concern.
public struct Marbles: Sendable, Hashable, CustomStringConvertible, ExpressibleByStringLiteral {
    /// What can happen in a frame.
    public enum Event: Sendable, Hashable {
        /// An element.
        case element(String)
        /// The end.
        case end
        /// The end with a failure.
        case failure
        /// The consumer begins, or asks.
        case ask
        /// The consumer is cancelled.
        case cancel
    }

    /// An event and its frame.
    public struct Mark: Sendable, Hashable {
        /// The number of the frame, from 0.
        public let frame: Int
        /// What happens in it.
        public let event: Event

        /// Makes a mark.
        public init(frame: Int, event: Event) {
            self.frame = frame
            self.event = event
        }
    }

    /// What happens, in order.
    public let marks: [Mark]
    /// How many frames the diagram was written with; quiet ones at the end included.
    public let frames: Int

    /// Makes a diagram from what happened.
    ///
    /// - Parameters:
    ///   - marks: In the order of their frames.
    ///   - frames: How many frames it has at least.
    public init(marks: [Mark], frames: Int = 0) {
        self.marks = marks
        self.frames = max(frames, (marks.last?.frame ?? -1) + 1)
    }

    /// Reads a diagram.
    ///
    /// - Throws: ``MarbleSyntaxError``, which says where and why.
    public init(_ text: String) throws(MarbleSyntaxError) {
        var parser = MarbleParser(text)
        self = try parser.parse()
    }

    /// A diagram that stands in the source of a test. A wrong one traps: like a wrong literal of any other type it is
    /// an error of who wrote it.
    public init(stringLiteral text: String) {
        do {
            try self.init(text)
        } catch {
            preconditionFailure("\(error)")  // safe: a literal in the test itself
        }
    }

    /// Two diagrams are equal if the same happens in the same frames.
    public static func == (left: Marbles, right: Marbles) -> Bool {
        left.marks == right.marks
    }

    /// Hashes what equality compares.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(marks)
    }

    /// The diagram, as it would be written.
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
        case .ask: "^"
        case .cancel: "!"
        }
    }
}

extension Character {
    fileprivate var isMarbleName: Bool {
        isASCII && (isLetter || isNumber) && self != "x"
    }
}

/// A text is not a marble diagram.
public struct MarbleSyntaxError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The text.
    public let text: String
    /// Where it is wrong: the number of characters before that place.
    public let offset: Int
    /// What is wrong, and what would be right.
    public let reason: String

    /// The diagram with a caret below the place, and the reason.
    public var description: String {
        "not a marble diagram: \(reason)\n\(text)\n\(String(repeating: " ", count: offset))^"
    }
}

/// Reads one diagram.
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
                throw error(at: position, "a group is one frame, no time passes in it; put '-' outside of it")
            case "(":
                throw error(at: position, "a group cannot hold a group; write their events in one")
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
        case "^": event = .ask
        case "!": event = .cancel
        case "{":
            let start = position
            guard let close = characters[start...].firstIndex(of: "}") else {
                throw error(at: start, "the name is not closed; add a '}'")
            }
            let name = String(characters[(start + 1)..<close])
            guard !name.isEmpty, !name.contains("{") else {
                throw error(at: start, "a name between braces is not empty and has no brace")
            }
            position = close
            event = .element(name)
        case _ where character.isMarbleName:
            event = .element(String(character))
        default:
            throw error(at: position, "'\(character)' has no meaning; longer names stand between braces")
        }
        position += 1
        marks.append(Marbles.Mark(frame: frame, event: event))
    }

    private func error(at offset: Int, _ reason: String) -> MarbleSyntaxError {
        MarbleSyntaxError(text: text, offset: offset, reason: reason)
    }
}
