/// What stands around a stage: the items of the fan-outs that it is in.
struct EvaluationContext: Sendable {
    /// The keys that lead to the branch; none: the pipeline's own stage.
    var path: [String] = []
    /// What its programs find, the innermost last.
    var variables: [JQVariable] = []
    /// What fills the places of its URL. An item's place without a value has none here.
    var places: [URLTemplate.Place: String] = [:]
    /// That of the innermost joined stage around it.
    var reading: ConsistentRead?

    /// Where URLs may lead that the items name, by the items' names.
    var lists: [String: ItemList] = [:]

    /// The list that an item is on.
    struct ItemList: Sendable {
        /// The request for it; nil: it came from no origin.
        var source: HTTPSource?
        /// URLs that its items name lead to that request's origin only.
        var sameOrigin: Bool
    }

    /// Another number for each branch, the same in each run of one seed.
    func seed(from seed: UInt64) -> UInt64 {
        path.joined(separator: "/").utf8.reduce(seed) { Jitter.mix($0 ^ UInt64($1)) }
    }

    /// The scope of a branch.
    ///
    /// - Parameter list: the request for the list; nil: it came from no origin.
    func entering(_ item: BranchItem, of each: EachDefinition, from list: HTTPSource?) -> EvaluationContext {
        var scope = self
        scope.path.append(item.key)
        scope.lists[each.name] = ItemList(source: list, sameOrigin: each.sameOrigin)
        scope.variables.append(JQVariable(each.name, json: item.json))
        // An inner fan-out of the same name hides the outer one.
        scope.places = scope.places.filter { $0.key.name != each.name }
        scope.places.merge(item.places) { _, new in new }
        return scope
    }
}

/// One item of a list, of which a branch is made.
struct BranchItem: Hashable, Sendable {
    /// What tells it apart, as text.
    var key: String
    /// The item as one JSON text.
    var json: [UInt8]
    /// The values that it has for places in URLs.
    var places: [URLTemplate.Place: String]
}

extension EachDefinition {
    /// The items of a list, by a jq program in the helper. Of two with one key the last counts, at the first one's place.
    ///
    /// - Parameter list: one JSON text.
    func items(
        of list: [UInt8], by transformer: any Transforming, with variables: [JQVariable]
    ) async throws(FetchError) -> [BranchItem] {
        let places = places
        let values = try await transformer.values(of: list, by: itemsProgram(places), variables: variables)
        let width = 2 + places.count
        guard values.count.isMultiple(of: width) else {
            throw .failed(RunFailure(.content, "each.key has to give one value for each item (\(key))"))
        }
        guard values.count / width <= Self.maximumItems else {
            throw .failed(
                RunFailure(
                    .content,
                    "the list has \(values.count / width) items, more than 'each' takes (\(Self.maximumItems))"))
        }
        var items: [BranchItem] = []
        var known: [String: Int] = [:]
        for start in stride(from: 0, to: values.count, by: width) {
            guard values[start + 1].count <= Self.maximumKeyBytes else {
                throw .failed(
                    RunFailure(
                        .content,
                        "an item has a key of \(values[start + 1].count) bytes, more than 'each' takes "
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
                key: String(decoding: values[start + 1], as: UTF8.self), json: values[start], places: [:])
            for (place, value) in zip(places, values[(start + 2)...]) where value.first == Self.present {
                item.places[place] = String(decoding: value.dropFirst(), as: UTF8.self)
            }
            if let first = known[item.key] {
                // Strings are equal if they are canonically equivalent (UAX #15), and each would have the other's branch.
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

    /// What stands before a place's value; of one that is no value for a URL there is only another sign.
    private static let present = UInt8(ascii: "=")

    /// For each item: itself, its key, and the value for each place.
    private func itemsProgram(_ places: [URLTemplate.Place]) -> String {
        // A program of the configuration may end with a comment: what follows stands on a line of its own.
        var outputs = [
            "tojson",
            "([(\(key)\n)] | if length == 1 and .[0] != null then .[0] | if type == \"string\" then . else tojson end "
                + "else error(\"each.key gives no single value for an item\") end)",
        ]
        for place in places {
            let way = place.path.map { "[\"\($0)\"]?" }.joined()
            outputs.append(
                "((if \(place.path.isEmpty ? "true" : "type == \"object\"") then .\(way) else null end) "
                    + "| if type == \"string\" then \"=\" + . elif type == \"number\" or type == \"boolean\" "
                    + "then \"=\" + tojson else \"-\" end)")
        }
        return "if type == \"array\" then .[] else error(\"'each' needs a list, and this is \" + type) end | "
            + outputs.joined(separator: ", ")
    }
}
