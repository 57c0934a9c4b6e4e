import FreshetPipelines

/// Reads a tree of nodes as a definition, key by key, and collects all errors and warnings. The value of a key with an
/// error is nil; the caller checks ``errors`` before it uses the result.
///
/// The readers of the sections, such as ``RefreshReader``, share one object for each file.
final class DefinitionReader {
    private(set) var errors: [Diagnostic] = []
    /// The pipelines that `refresh.after` and sources name. Whether they exist is checked after all files are read.
    var predecessors: [Predecessor] = []
    /// The limits of hooks. Whether all limits of a group are equal is checked after all files are read.
    var hookLimits: [LocatedHookLimit] = []
    /// Where the template is named. Its file is read after the pipeline's file.
    var template: (file: String, location: Location)?
    /// The pipeline's valid parameters, and the names of all parameters.
    var parameters: [ParameterDefinition] = []
    var parameterNames: [String] = []
    /// Whether a drop-in could not be read. Then missing keys are not reported: the drop-in may have them.
    let isIncomplete: Bool
    let context: LoadContext
    /// What was read of equal sections; nil: nothing.
    let memory: ReadingMemory?

    init(isIncomplete: Bool = false, context: LoadContext = LoadContext(), memory: ReadingMemory? = nil) {
        self.isIncomplete = isIncomplete
        self.context = context
        self.memory = memory
    }

    func addError(
        _ location: Location, _ keyPath: String?, _ message: String, remedy: String? = nil, related: Location? = nil
    ) {
        errors.append(
            Diagnostic(at: location, keyPath: keyPath, message: message, remedy: remedy, related: related))
    }

    func warning(_ location: Location, _ keyPath: String?, _ message: String, remedy: String? = nil) {
        errors.append(
            Diagnostic(at: location, severity: .warning, keyPath: keyPath, message: message, remedy: remedy))
    }

    /// The mapping of a whole file.
    func root(_ name: KeyCatalogue.Section, _ node: Node) -> Section? {
        section(name, node, keyPath: nil, subject: "the file")
    }

    /// The mapping below a key; nil if there is none.
    func section(_ name: KeyCatalogue.Section, _ key: String, in parent: Section) -> Section? {
        parent[key].flatMap { section(name, $0.value, keyPath: parent.path(key), subject: "'\(key)'") }
    }

    /// The mapping of a node, an element of a list for instance.
    func section(
        _ name: KeyCatalogue.Section, _ node: Node, keyPath: String?, subject: String
    ) -> Section? {
        switch node.content {
        case .mapping(let entries):
            let section = Section(name: name, location: node.location, entries: entries, keyPath: keyPath ?? "")
            let keys = name.keys
            for entry in entries where !keys.contains(entry.key) {
                let error = name.error(forKey: entry.key)
                addError(entry.location, section.path(entry.key), error.message, remedy: error.remedy)
            }
            return section
        case .scalar, .sequence:
            let remedy = "its keys are \(name.keys.joined(separator: ", "))"
            addError(
                node.location, keyPath, "\(subject) has to contain keys with values, not \(node.kind)", remedy: remedy)
            return nil
        case .removed, .invalid:
            return nil
        }
    }

    /// The value of a key; nil if the key is absent or invalid. Most keys are absent.
    func value<Value>(_ key: String, in section: Section, _ kind: @autoclosure () -> ValueKind<Value>) -> Value? {
        guard let index = section.index(of: key) else { return nil }
        return value(of: section.entries[index].value, key: key, keyPath: section.path(key), kind())
    }

    /// The elements of a key's list, each with its location; a single value is a list of one element. Nil if the key is
    /// absent. Invalid elements are left out.
    func list<Value>(
        _ key: String, in section: Section, _ kind: @autoclosure () -> ValueKind<Value>
    ) -> [(value: Value, location: Location)]? {
        guard let entry = section[key] else { return nil }
        let elements: [Node]
        if case .sequence(let nodes) = entry.value.content { elements = nodes } else { elements = [entry.value] }
        let kind = kind()
        return elements.compactMap { element in
            value(of: element, key: key, keyPath: section.path(key), kind).map { ($0, element.location) }
        }
    }

    func value<Value>(
        of node: Node, key: String, keyPath: @autoclosure () -> String, _ kind: ValueKind<Value>
    ) -> Value? {
        switch node.content {
        case .scalar(let scalar):
            guard !scalar.isNothing else {
                addError(
                    node.location, keyPath(), "'\(key)' has no value",
                    remedy: "it has to be \(kind.name); for the default, leave the key out")
                return nil
            }
            do throws(ValueError) {
                return try kind.read(scalar)
            } catch {
                self.addError(node.location, keyPath(), "'\(key)' \(error.message)", remedy: error.remedy)
                return nil
            }
        case .sequence, .mapping:
            addError(
                node.location, keyPath(), "'\(key)' has to be \(kind.name), not \(node.kind)",
                remedy: node.isPlaceholder ? "quote the text: it contains braces" : nil)
            return nil
        case .removed, .invalid:
            return nil
        }
    }

    /// A key of a section that was read before: its errors are not reported again.
    func entry(_ key: String, below parent: String, in file: Section) -> Node.Entry? {
        guard case .mapping(let entries)? = file[parent]?.value.content else { return nil }
        return entries.first { $0.key == key }
    }

    /// The pipelines after which this one runs, without duplicates: those in `refresh.after` and those whose copies it
    /// reads.
    var predecessorNames: [String] {
        guard !predecessors.isEmpty else { return [] }
        var known: Set<String> = []
        return predecessors.map(\.name).filter { known.insert($0).inserted }
    }

    /// Reports a missing key.
    func missing(_ location: Location, _ keyPath: String, _ message: String, remedy: String) {
        guard !isIncomplete else { return }
        addError(location, keyPath, message, remedy: remedy)
    }
}

/// A mapping whose unknown keys were reported.
struct Section {
    let name: KeyCatalogue.Section
    let location: Location
    let entries: [Node.Entry]
    /// The keys that lead to it, such as `source.each`; empty for a whole file.
    let keyPath: String

    /// The entry of a key, unless a drop-in removed it.
    subscript(key: String) -> Node.Entry? { index(of: key).map { entries[$0] } }

    /// The index of the entry of a key, unless a drop-in removed it.
    func index(of key: String) -> Int? {
        // Without a closure, which would copy each entry.
        for index in entries.indices where entries[index].key == key {
            if case .removed = entries[index].value.content { return nil }
            return index
        }
        return nil
    }

    func path(_ key: String) -> String {
        keyPath.isEmpty ? key : "\(keyPath).\(key)"
    }
}
