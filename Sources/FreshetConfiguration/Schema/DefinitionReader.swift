import FreshetPipelines

/// Reads a tree of nodes as a definition, key by key, and gathers every fault on the way. A fault makes its key's value
/// nil; whoever made the reader looks at the faults before it uses what was read.
struct DefinitionReader {
    private(set) var faults: [Diagnostic] = []
    /// The pipelines that `refresh.after` names, to be looked for when all files are read.
    var predecessors: [Predecessor] = []
    /// The pipeline's parameters, as far as they are sound, and the names of all of them.
    var parameters: [ParameterDefinition] = []
    var parameterNames: [String] = []
    /// A drop-in could not be read: what is missing may stand there.
    let isIncomplete: Bool
    let terms: LoadContext

    init(isIncomplete: Bool = false, terms: LoadContext = LoadContext()) {
        self.isIncomplete = isIncomplete
        self.terms = terms
    }

    /// A mapping whose keys are known to be good.
    struct Section {
        let name: KeyCatalogue.Section
        let location: Location
        let entries: [Node.Entry]
        /// The keys that lead to it, such as `source.each`; empty for a whole file.
        let keyPath: String

        /// The entry of a key, unless a drop-in removed it.
        subscript(key: String) -> Node.Entry? {
            guard let entry = entries.first(where: { $0.key == key }) else { return nil }
            if case .removed = entry.value.content { return nil }
            return entry
        }

        func path(_ key: String) -> String {
            keyPath.isEmpty ? key : "\(keyPath).\(key)"
        }
    }

    mutating func error(
        _ location: Location, _ keyPath: String?, _ message: String, remedy: String? = nil, related: Location? = nil
    ) {
        faults.append(
            Diagnostic(at: location, keyPath: keyPath, message: message, remedy: remedy, related: related))
    }

    mutating func warning(_ location: Location, _ keyPath: String?, _ message: String, remedy: String? = nil) {
        faults.append(
            Diagnostic(at: location, severity: .warning, keyPath: keyPath, message: message, remedy: remedy))
    }

    /// A whole file's mapping.
    mutating func root(_ name: KeyCatalogue.Section, _ node: Node) -> Section? {
        section(name, node, keyPath: nil, subject: "the file")
    }

    /// The mapping below a key; nil if there is none.
    mutating func section(_ name: KeyCatalogue.Section, _ key: String, in parent: Section) -> Section? {
        parent[key].flatMap { section(name, $0.value, keyPath: parent.path(key), subject: "'\(key)'") }
    }

    /// The mapping of a node, an element of a list for instance.
    mutating func section(
        _ name: KeyCatalogue.Section, _ node: Node, keyPath: String?, subject: String
    ) -> Section? {
        switch node.content {
        case .mapping(let entries):
            let section = Section(name: name, location: node.location, entries: entries, keyPath: keyPath ?? "")
            for entry in entries where !name.keys.contains(entry.key) {
                let fault = name.fault(forKey: entry.key)
                error(entry.location, section.path(entry.key), fault.message, remedy: fault.remedy)
            }
            return section
        case .scalar, .sequence:
            let remedy = "its keys are \(name.keys.joined(separator: ", "))"
            error(node.location, keyPath, "\(subject) has to hold keys with values, not \(node.kind)", remedy: remedy)
            return nil
        case .removed, .refused:
            return nil
        }
    }

    /// The value of a key; nil if it is not there or faulty.
    mutating func value<Value>(_ key: String, in section: Section, _ kind: ValueKind<Value>) -> Value? {
        section[key].flatMap { value(of: $0.value, key: key, keyPath: section.path(key), kind) }
    }

    /// The elements of a key's list, each with its place; a single value is a list of one. Nil if the key is not there;
    /// faulty elements are left out.
    mutating func list<Value>(
        _ key: String, in section: Section, _ kind: ValueKind<Value>
    ) -> [(value: Value, location: Location)]? {
        guard let entry = section[key] else { return nil }
        let elements: [Node]
        if case .sequence(let nodes) = entry.value.content { elements = nodes } else { elements = [entry.value] }
        return elements.compactMap { element in
            value(of: element, key: key, keyPath: section.path(key), kind).map { ($0, element.location) }
        }
    }

    mutating func value<Value>(of node: Node, key: String, keyPath: String, _ kind: ValueKind<Value>) -> Value? {
        switch node.content {
        case .scalar(let scalar):
            guard !scalar.isNothing else {
                error(
                    node.location, keyPath, "'\(key)' has no value",
                    remedy: "it has to be \(kind.name); to have the default, leave the key out")
                return nil
            }
            do throws(ValueError) {
                return try kind.read(scalar)
            } catch {
                self.error(node.location, keyPath, "'\(key)' \(error.message)", remedy: error.remedy)
                return nil
            }
        case .sequence, .mapping:
            error(node.location, keyPath, "'\(key)' has to be \(kind.name), not \(node.kind)")
            return nil
        case .removed, .refused:
            return nil
        }
    }

    /// Reports a key that has to be there.
    mutating func missing(_ location: Location, _ keyPath: String, _ message: String, remedy: String) {
        guard !isIncomplete else { return }
        error(location, keyPath, message, remedy: remedy)
    }
}
