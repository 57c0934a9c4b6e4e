/// A node of a configuration file: what was written and where. Scalars are text; what kind of value it has to be is
/// known to the reader of the key, so that `on` is never a truth value and `0644` never a number.
struct Node: Sendable {
    var content: Content
    var location: Location

    enum Content: Sendable {
        case scalar(Scalar)
        case sequence([Node])
        case mapping([Entry])
        /// A drop-in took it away by `null`.
        case removed
        /// Not to be read further: a fault was reported already.
        case refused
    }

    struct Scalar: Sendable {
        var text: String
        /// Written without quotation marks, on the lines themselves.
        var isPlain: Bool
    }

    struct Entry: Sendable {
        var key: String
        var location: Location
        var value: Node
    }

    /// What it is, in the words of a message.
    var kind: String {
        switch content {
        case .scalar(let scalar) where scalar.isNothing: "nothing"
        case .scalar: "text"
        case .sequence: "a list"
        case .mapping: "keys with values"
        case .removed, .refused: "nothing"
        }
    }
}

extension Node.Scalar {
    /// What YAML calls null: no value, `null` or `~`.
    var isNothing: Bool { isPlain && (text.isEmpty || text == "null" || text == "~") }
    /// The word by which a drop-in removes a key.
    var removes: Bool { isPlain && text == "null" }
}

extension Node {
    /// This node with a drop-in's laid over it: mappings merge, scalars and lists replace, `null` removes. Each part
    /// keeps the place where it was written.
    func merging(_ dropIn: Node) -> Node {
        switch (content, dropIn.content) {
        case (_, .scalar(let scalar)) where scalar.removes:
            return Node(content: .removed, location: dropIn.location)
        case (.mapping(var entries), .mapping(let additions)):
            for addition in additions {
                if let index = entries.firstIndex(where: { $0.key == addition.key }) {
                    let merged = entries[index].value.merging(addition.value)
                    // A merged mapping is still the lower file's; anything else is now the drop-in's.
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
            // There is nothing below it to merge with, but its own `null`s remove nothing all the same.
            return Node(content: .mapping([]), location: dropIn.location).merging(dropIn)
        default:
            return dropIn
        }
    }
}
