/// A node of a configuration file, with its location. Scalars are text: the code that reads a key decides on the kind
/// of value, so that `on` is never a Boolean and `0644` never a number.
struct Node: Sendable {
    var content: Content
    var location: Location

    enum Content: Sendable {
        case scalar(Scalar)
        case sequence([Node])
        case mapping([Entry])
        /// A drop-in removed the node with `null`.
        case removed
        /// The node is invalid, and the error was reported already.
        case invalid
    }

    struct Scalar: Sendable {
        var text: String
        /// Whether the text is a plain scalar: without quotation marks, and not a block scalar.
        var isPlain: Bool
    }

    struct Entry: Sendable {
        var key: String
        var location: Location
        var value: Node
    }

    /// Whether it is probably a text that begins with a placeholder and needs quotation marks: `url: {item.url}` is a
    /// mapping with a key and no value.
    var isPlaceholder: Bool {
        guard case .mapping(let entries) = content, entries.count == 1,
            case .scalar(let value)? = entries.first?.value.content
        else { return false }
        return value.isPlain && value.text.isEmpty
    }

    /// The kind of node, for messages.
    var kind: String {
        switch content {
        case .scalar(let scalar) where scalar.isNothing: "an empty value"
        case .scalar: "text"
        case .sequence: "a list"
        case .mapping: "keys with values"
        case .removed, .invalid: "nothing"
        }
    }
}

extension Node.Scalar {
    /// Whether it is a null of YAML: no value, `null` or `~`.
    var isNothing: Bool { isPlain && (text.isEmpty || text == "null" || text == "~") }
    /// Whether it is `null`, with which a drop-in removes a key.
    var removes: Bool { isPlain && text == "null" }
}

extension Node {
    /// This node merged with the node of a drop-in: mappings are merged, scalars and lists are replaced, and `null`
    /// removes. Each part keeps its location.
    func merging(_ dropIn: Node) -> Node {
        switch (content, dropIn.content) {
        case (_, .scalar(let scalar)) where scalar.removes:
            return Node(content: .removed, location: dropIn.location)
        case (.mapping(var entries), .mapping(let additions)):
            for addition in additions {
                if let index = entries.firstIndex(where: { $0.key == addition.key }) {
                    let merged = entries[index].value.merging(addition.value)
                    // A merged mapping keeps the location of the lower file; any other node gets the drop-in's.
                    if case .mapping = merged.content, case .mapping = entries[index].value.content {
                        entries[index].value = merged
                    } else {
                        entries[index] = Entry(key: addition.key, location: addition.location, value: merged)
                    }
                } else {
                    let nothing = Node(content: .removed, location: addition.value.location)
                    entries.append(
                        Entry(
                            key: addition.key, location: addition.location,
                            value: nothing.merging(addition.value)))
                }
            }
            return Node(content: .mapping(entries), location: location)
        case (_, .mapping):
            // There is no mapping to merge with. The merge with an empty one handles the `null`s in the drop-in.
            return Node(content: .mapping([]), location: dropIn.location).merging(dropIn)
        default:
            return dropIn
        }
    }
}

extension Node {
    /// Whether the node has the same content as another one; their locations do not matter. The texts have to be ASCII:
    /// other texts may be equal and have different bytes.
    func hasSameContent(as other: Node) -> Bool {
        switch (content, other.content) {
        case (.scalar(let one), .scalar(let two)):
            return one.isPlain == two.isPlain && one.text == two.text
        case (.sequence(let one), .sequence(let two)):
            guard one.count == two.count else { return false }
            for index in one.indices where !one[index].hasSameContent(as: two[index]) { return false }
            return true
        case (.mapping(let one), .mapping(let two)):
            guard one.count == two.count else { return false }
            for index in one.indices {
                guard one[index].key == two[index].key, one[index].value.hasSameContent(as: two[index].value) else {
                    return false
                }
            }
            return true
        case (.removed, .removed), (.invalid, .invalid): return true
        case (.scalar, _), (.sequence, _), (.mapping, _), (.removed, _), (.invalid, _): return false
        }
    }
}
