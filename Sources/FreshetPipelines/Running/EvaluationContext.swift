/// The context of a stage: the items of the fan-outs around it.
struct EvaluationContext: Sendable {
    /// The keys on the path to the branch; empty: the pipeline's own stage.
    var path: [String] = []
    /// The parts of the innermost fan-out, the number of the branch in it, and the placeholders of the source of its
    /// stage, which is the same for all branches; nil: the stage is not the branch's own.
    var branch: (parts: BranchParts, number: Int, placeholders: [URLTemplate.Placeholder])?
    /// The variables of the stage's programs, the innermost last.
    var variables: [JQVariable] = []
    /// The values of the placeholders. A placeholder of an item without a value is missing here.
    var placeholders: [URLTemplate.Placeholder: String] = [:]
    /// The read of the innermost joined stage around this stage.
    var reading: ConsistentRead?

    /// The lists of the items, by the items' names: they decide where URLs of items may lead.
    var lists: [String: ItemList] = [:]

    /// The list of an item.
    struct ItemList: Sendable {
        /// The request for the list; nil: the list came from no origin.
        var source: HTTPSource?
        /// Whether URLs of its items must be at that request's origin.
        var sameOrigin: Bool
    }

    /// A seed that differs between branches and is the same in each run with the same seed.
    func seed(from seed: UInt64) -> UInt64 {
        path.joined(separator: "/").utf8.reduce(seed) { Jitter.mix($0 ^ UInt64($1)) }
    }

    /// The binding of a stage's stored part: everything that decides what the part becomes.
    ///
    /// - Parameter types: the accepted media types.
    func binding(of stage: StageDefinition, asking source: SourceDefinition, accepting types: [String]) -> String {
        var binding = BindingHash()
        binding.add(source)
        if let unpack = stage.unpack { binding.add("unpack:\(unpack)") }
        binding.add(stage.pages?.summary ?? "")
        binding.add(stage.transform ?? "")
        if stage.format != .json { binding.add("format:\(stage.format)") }
        binding.add(types.joined(separator: " "))
        for variable in variables {
            binding.add(variable.name)
            binding.add(variable.json)
        }
        return binding.text
    }

    /// The context of a branch.
    ///
    /// - Parameter list: the request for the list; nil: the list came from no origin.
    func entering(_ item: BranchItem, of each: EachDefinition, from list: HTTPSource?) -> EvaluationContext {
        var scope = self
        scope.path.append(item.key)
        scope.lists[each.name] = ItemList(source: list, sameOrigin: each.sameOrigin)
        scope.variables.append(JQVariable(each.name, json: item.json))
        // An inner fan-out of the same name hides the outer one.
        scope.placeholders = scope.placeholders.filter { $0.key.name != each.name }
        scope.placeholders.merge(item.placeholders) { _, new in new }
        return scope
    }
}

/// One item of a list, for one branch.
struct BranchItem: Hashable, Sendable {
    /// The item's key as text.
    var key: String
    /// The item as one JSON text.
    var json: [UInt8]
    /// The item's values for placeholders.
    var placeholders: [URLTemplate.Placeholder: String]
}

extension EachDefinition {
    /// The items of a list, by a jq program in the helper. Of items with the same key, the last one is kept, at the
    /// position of the first.
    func items(
        of list: [UInt8], by transformer: any Transforming, with variables: [JQVariable]
    ) async throws(FetchError) -> [BranchItem] {
        let placeholders = placeholders
        // Each value is released as soon as its item has it: a list has up to three times its size in values.
        var values = try await transformer.values(of: list, by: itemsProgram(placeholders), variables: variables)
        let width = 2 + placeholders.count
        guard values.count.isMultiple(of: width) else {
            throw .failed(RunFailure(.content, "each.key has to give one value for each item (\(key))"))
        }
        guard values.count / width <= Self.maximumItems else {
            throw .failed(
                RunFailure(
                    .content,
                    "the list has \(values.count / width) items, more than 'each' allows (\(Self.maximumItems))"))
        }
        var items: [BranchItem] = []
        var known: [String: Int] = [:]
        for start in stride(from: 0, to: values.count, by: width) {
            guard values[start + 1].count <= Self.maximumKeyBytes else {
                throw .failed(
                    RunFailure(
                        .content,
                        "an item has a key of \(values[start + 1].count) bytes, more than 'each' allows "
                            + "(\(Self.maximumKeyBytes)); see each.key (\(key))"))
            }
            guard CombiningMarks.areFew(in: values[start + 1]) else {
                throw .failed(
                    RunFailure(
                        .content,
                        "an item has a key with more than \(CombiningMarks.limit) combining characters in a row; see "
                            + "each.key (\(key))"))
            }
            var item = BranchItem(
                key: String(decoding: values[start + 1], as: UTF8.self), json: values[start], placeholders: [:])
            for (placeholder, value) in zip(placeholders, values[(start + 2)...]) where value.first == Self.present {
                let isKey = value.dropFirst().elementsEqual(values[start + 1])
                // Two strings of one storage: in most lists the key is what the URL is made of.
                item.placeholders[placeholder] = isKey ? item.key : String(decoding: value.dropFirst(), as: UTF8.self)
            }
            for index in start..<(start + width) { values[index] = [] }
            if let first = known[item.key] {
                // Canonically equivalent strings are equal (UAX #15), so the two items would share one branch.
                guard items[first].key.utf8.elementsEqual(item.key.utf8) else {
                    throw .failed(
                        RunFailure(
                            .content,
                            "two items have keys that are the same text in different Unicode encodings: "
                                + "'\(item.key)'; see each.key (\(key))"))
                }
                items[first] = item
            } else {
                known[item.key] = items.count
                items.append(item)
            }
        }
        return items
    }

    /// The prefix of a placeholder's value. A value that cannot be inserted has another prefix.
    private static let present = UInt8(ascii: "=")

    /// A program with these outputs for each item: the item, its key, and the value of each placeholder.
    private func itemsProgram(_ placeholders: [URLTemplate.Placeholder]) -> String {
        // A line break follows the configured program, which may end with a comment.
        var outputs = [
            "tojson",
            "([(\(key)\n)] | if length == 1 and .[0] != null then .[0] | if type == \"string\" then . else tojson end "
                + "else error(\"each.key gives no single value for an item\") end)",
        ]
        for placeholder in placeholders {
            let way = placeholder.path.map { "[\"\($0)\"]?" }.joined()
            outputs.append(
                "((if \(placeholder.path.isEmpty ? "true" : "type == \"object\"") then .\(way) else null end) "
                    + "| if type == \"string\" then \"=\" + . elif type == \"number\" or type == \"boolean\" "
                    + "then \"=\" + tojson else \"-\" end)")
        }
        return "if type == \"array\" then .[] else error(\"'each' needs a list, and this is \" + type) end | "
            + outputs.joined(separator: ", ")
    }
}
