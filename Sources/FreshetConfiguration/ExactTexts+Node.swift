import FreshetPipelines

extension ExactTexts {
    /// The keys of a pipeline's file that do not decide what the snapshot becomes.
    private static let otherKeys: Set<String> = ["description", "refresh", "on-change", "fleet"]

    /// The texts of a file that has been merged with its drop-ins, and their keys.
    init(of root: Node) {
        self.init()
        guard case .mapping(let entries) = root.content else { return }
        var (product, others): ([[UInt8]], [[UInt8]]) = ([], [])
        for entry in entries {
            if Self.otherKeys.contains(entry.key) {
                Self.add(entry, below: "", to: &others)
            } else {
                Self.add(entry, below: "", to: &product)
            }
        }
        // The order of the keys has no meaning.
        func joined(_ texts: [[UInt8]]) -> [UInt8] {
            texts.sorted { $0.lexicographicallyPrecedes($1) }.flatMap { $0 + [0xFF] }
        }
        ofProduct = joined(product)
        self.others = joined(others)
    }

    private static func add(_ entry: Node.Entry, below path: String, to texts: inout [[UInt8]]) {
        add(entry.value, at: "\(path).\(entry.key)", to: &texts)
    }

    private static func add(_ node: Node, at path: String, to texts: inout [[UInt8]]) {
        switch node.content {
        case .scalar(let scalar):
            guard !isASCII(scalar.text) || !isASCII(path) else { return }
            // UTF-8 has neither of these bytes.
            texts.append(Array(path.utf8) + [0xFE] + Array(scalar.text.utf8))
        case .sequence(let nodes):
            for (index, node) in nodes.enumerated() { add(node, at: "\(path)[\(index)]", to: &texts) }
        case .mapping(let entries):
            for entry in entries { add(entry, below: path, to: &texts) }
        case .removed, .invalid: break
        }
    }

    private static func isASCII(_ text: String) -> Bool { text.utf8.allSatisfy { $0 < 0x80 } }
}
