import Mustache
import Synchronization

/// The first error of a rendering: swift-mustache cannot throw while it renders.
final class Rendering: Sendable {
    struct Failure: Hashable {
        /// The name in the tag.
        var name: String
        var reason: String
    }

    private let state = Mutex((failure: Failure?.none, name: ""))

    var failure: Failure? { state.withLock(\.failure) }

    /// Remembers the name whose text is escaped next.
    func begin(_ name: String) { state.withLock { $0.name = name } }

    /// - Parameter name: nil: the name whose text is escaped now.
    func fail(_ name: String?, _ reason: String) {
        state.withLock { state in
            if state.failure == nil { state.failure = Failure(name: name ?? state.name, reason: reason) }
        }
    }
}

/// Escapes the texts of one rendering.
struct EscapedContent: MustacheContentType {
    let escape: Escape
    let rendering: Rendering

    func escapeText(_ text: String) -> String {
        do throws(Escape.Impossible) {
            return try escape.escaped(text)
        } catch {
            rendering.fail(nil, error.reason)
            return ""
        }
    }
}

/// A value of the input as swift-mustache sees it.
///
/// swift-mustache searches a name in the values of the sections around a tag, from the innermost to the outermost, and
/// the rest of a dotted name only in the value that it has found. Both searches call `child(named:)`. A name that is
/// missing must be skipped in the first search, except in the outermost value, and must be an error in the second.
/// `representation` distinguishes them: swift-mustache asks for it once when it goes on from a value, and once more
/// when the value is the result, so a result has one step more behind it than a value on the way.
protocol RenderedValue: MustacheParent, MustacheCustomRenderable {
    var node: Node { get }
}

/// A value of the input.
struct Node {
    let text: JSONText
    /// The place in the index of the text.
    let index: Int
    /// The name in the tag that led to the value.
    let name: String
    let rendering: Rendering

    var isList: Bool { text.kind(index) == .list }

    func at(_ index: Int, _ name: String) -> Node { Node(text: text, index: index, name: name, rendering: rendering) }

    func member(_ member: String, as name: String) -> Step? {
        text.member(member, of: index).map { Step(node: at($0, name)) }
    }
}

extension RenderedValue {
    /// Whether a section of the value is left out: `false` and `null`, as in jq. An empty list has no items.
    var isNull: Bool { [.null, .false].contains(node.text.kind(node.index)) }

    var renderText: String {
        guard node.text.kind(node.index) != .null else {
            node.rendering.fail(node.name, "is null")
            return ""
        }
        node.rendering.begin(node.name)
        return node.text.text(node.index)
    }
}

/// A value that is a list.
protocol RenderedList: RenderedValue, MustacheSequence {}

extension RenderedList {
    func makeIterator() -> ItemIterator { ItemIterator(node) }
}

/// The items of a list.
struct ItemIterator: IteratorProtocol {
    private let list: Node
    private var index: Int

    init(_ list: Node) {
        self.list = list
        index = list.text.first(list.index)
    }

    mutating func next() -> Any? {
        guard list.text.kind(index) != .end else { return nil }
        defer { index = list.text.next(index) }
        return Item.make(list.at(index, "."))
    }
}

/// The whole input.
struct Root: RenderedValue {
    let node: Node

    static func make(_ node: Node) -> Any { node.isList ? RootList(node: node) : Root(node: node) }

    func child(named name: String) -> Any? { node.member(name, as: name) ?? Missing(name, node.rendering) }
}

/// The whole input, which is a list.
struct RootList: RenderedList {
    let node: Node

    func child(named name: String) -> Any? { Missing(name, node.rendering) }
}

/// A value that a name has led to.
struct Step: MustacheCustomRepresentation {
    let node: Node

    var representation: Any? { node.isList ? FoundList(node: node) : Found(node: node) }
}

/// The result of a search, or a value on the way to it.
struct Found: RenderedValue, MustacheCustomRepresentation {
    let node: Node

    var representation: Any? { Item.make(node) }

    func child(named name: String) -> Any? {
        let whole = "\(node.name).\(name)"
        return node.member(name, as: whole) ?? Missing(whole, node.rendering)
    }
}

/// A result of a search that is a list.
struct FoundList: RenderedList, MustacheCustomRepresentation {
    let node: Node

    var representation: Any? { Item.make(node) }

    func child(named name: String) -> Any? { Missing("\(node.name).\(name)", node.rendering) }
}

/// The value of a section around a tag.
struct Item: RenderedValue {
    let node: Node

    static func make(_ node: Node) -> Any { node.isList ? ItemList(node: node) : Item(node: node) }

    func child(named name: String) -> Any? { node.member(name, as: name) }
}

/// The value of a section around a tag, which is a list.
struct ItemList: RenderedList {
    let node: Node

    func child(named name: String) -> Any? { nil }
}

/// A name that the input does not have. A section of it is left out; to write it is an error.
struct Missing: MustacheParent, MustacheCustomRenderable {
    let name: String
    let rendering: Rendering

    init(_ name: String, _ rendering: Rendering) {
        self.name = name
        self.rendering = rendering
    }

    var isNull: Bool { true }

    var renderText: String {
        rendering.fail(name, "is missing")
        return ""
    }

    func child(named name: String) -> Any? { Missing("\(self.name).\(name)", rendering) }
}
