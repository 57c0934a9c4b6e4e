import FreshetEventLoop
import FreshetPipelines

/// The difference between two contents: numbers for JSON, lines for other text.
///
/// Contents are untrusted, so the jq helper and diff(1) parse them and the daemon does not.
struct ContentDifference: Codable, Hashable, Sendable {
    /// A changed part of a JSON text.
    struct Change: Codable, Hashable, Sendable {
        /// The name of the changed member; empty: the whole text.
        var member: String
        var kind: String
        /// Items or members before.
        var before: Int64
        var after: Int64
        var added: Int64
        var removed: Int64
        /// Members of an object that have another value.
        var changed: Int64
        /// The removed items of a list or members of an object, or the value before: at most ``valueLimit`` JSON texts,
        /// each cut after ``valueLength`` characters. Nil: none.
        var removedValues: [String]?
        /// The added items or members, or the value after, likewise.
        var addedValues: [String]?
    }

    /// The changes of a list whose items have keys.
    struct Items: Codable, Hashable, Sendable {
        /// Where an item's key is.
        var key: String
        /// The number of items before and after the change.
        var before: Int64
        var after: Int64
        /// The number of added items, removed items, and items with other content.
        var added: Int64
        var removed: Int64
        var changed: Int64
        /// The items that are in both lists have another order.
        var isReordered: Bool?
        /// The keys of these items in the order of the lists: at most ``keyLimit`` keys of each kind, each cut after
        /// ``keyLength`` characters.
        var addedKeys: [String]
        var removedKeys: [String]
        var changedKeys: [String]
    }

    /// The changes of a JSON list whose items have keys.
    var items: Items?
    /// The changes of other JSON: of the whole, and of at most ``memberLimit`` members. Empty: only the formatting
    /// differs.
    var changes: [Change]?
    /// The changes of text, in the unified format of diff(1).
    var lines: [String]?
    /// There are more lines.
    var isCut: Bool?

    /// The maximum size in bytes of JSON that is compared, because parsed JSON takes many times as much memory.
    static let sizeLimit = 16 << 20
    /// The maximum number of changed members whose content is compared.
    static let memberLimit = 8
    /// The maximum number of keys of each kind in the result.
    static let keyLimit = 1_000
    /// The maximum length of each key, in characters.
    static let keyLength = 256
    /// The maximum number of values of each kind in a change, and the length of each.
    static let valueLimit = 20
    static let valueLength = 256

    /// Compares two contents; nil: they cannot be compared.
    ///
    /// - Parameter key: where an item's key is, see ``CacheRules/key``. If it is nil, or if items have no such key,
    ///   items are compared as whole values.
    static func between(
        _ old: [UInt8], and new: [UInt8], key: String? = nil, by transformer: any Transforming, on loop: EventLoop
    ) async throws(FetchError) -> ContentDifference? {
        if old.count <= sizeLimit, new.count <= sizeLimit, let before = try await json(old, transformer),
            let after = try await json(new, transformer)
        {
            let pair = Array("[".utf8) + before + Array(",".utf8) + after + Array("]".utf8)
            if let key, let items = try await items(pair, key, transformer) {
                return ContentDifference(items: items)
            }
            let values = try await transformer.values(of: pair, by: program, variables: [])
            return ContentDifference(changes: changes(values))
        }
        guard let text = await TextDifference.between(old, and: new, on: loop) else { return nil }
        return ContentDifference(lines: text.lines, isCut: text.isCut ? true : nil)
    }

    /// The content as one compact JSON text; nil: the content is not JSON, or is neither a list nor an object.
    private static func json(
        _ bytes: [UInt8], _ transformer: any Transforming
    ) async throws(FetchError) -> [UInt8]? {
        do throws(FetchError) {
            let values = try await transformer.values(of: bytes, by: "type, tojson", variables: [])
            guard values.count == 2 else { return nil }
            return ["array", "object"].contains(String(decoding: values[0], as: UTF8.self)) ? values[1] : nil
        } catch {
            guard case .failed = error else { throw error }
            return nil
        }
    }

    /// Nil: the two contents are not lists whose items have unique keys.
    private static func items(
        _ pair: [UInt8], _ key: String, _ transformer: any Transforming
    ) async throws(FetchError) -> Items? {
        let values: [[UInt8]]
        do throws(FetchError) {
            values = try await transformer.values(of: pair, by: program(key: key), variables: [])
        } catch {
            guard case .failed = error else { throw error }
            return nil
        }
        let texts = values.map { String(decoding: $0, as: UTF8.self) }
        guard texts.count >= 6 else { return nil }
        let counts = texts[..<5].map { Int64($0) ?? 0 }
        var keys = texts[6...]
        func named(_ count: Int64) -> [String] {
            let taken = Array(keys.prefix(Int(min(count, Int64(keyLimit)))))
            keys = keys.dropFirst(taken.count)
            return taken
        }
        return Items(
            key: key, before: counts[0], after: counts[1], added: counts[2], removed: counts[3], changed: counts[4],
            isReordered: texts[5] == "true" ? true : nil, addedKeys: named(counts[2]), removedKeys: named(counts[3]),
            changedKeys: named(counts[4]))
    }

    /// The jq program for two lists. It prints the number of items before and after, the numbers of added, removed and
    /// changed items, whether the order of the others has changed, and then the keys.
    private static func program(key: String) -> String {
        let path = key == "." ? "." : key.dropFirst().split(separator: ".").map { ".\"\($0)\"" }.joined()
        return """
            def name: \(path) | if type == "string" then "s" + . elif type == "number" then "n" + tojson
              else error("no key") end;
            def named: reduce .[] as $item ({}; ($item | name) as $name
              | if has($name) then error("the same key twice") else .[$name] = $item end);
            def key: .[1:][0:\(keyLength)];
            if map(type) != ["array", "array"] then error("no lists") else . end
            | .[0] as $o | .[1] as $n | ($o | named) as $old | ($n | named) as $new
            | [$n[] | name] as $names | [$o[] | name] as $before
            | [$names[] | select(. as $name | $old | has($name) | not)] as $added
            | [$before[] | select(. as $name | $new | has($name) | not)] as $removed
            | [$names[] | select(. as $name | $old | has($name))] as $stayed
            | [$stayed[] | select(. as $name | $old[$name] != $new[$name])] as $changed
            | ($o | length), ($n | length), ($added | length), ($removed | length), ($changed | length),
              ($stayed != [$before[] | select(. as $name | $new | has($name))]),
              ($added[0:\(keyLimit)][] | key), ($removed[0:\(keyLimit)][] | key), ($changed[0:\(keyLimit)][] | key)
            """
    }

    /// The results before the values of a change.
    private static let width = 9

    private static func changes(_ values: [[UInt8]]) -> [Change] {
        var rest = values[...]
        var changes: [Change] = []
        func texts(_ count: Int) -> [String] {
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count).map { String(decoding: $0, as: UTF8.self) }
        }
        while rest.count >= width {
            let head = texts(width)
            let counts = head[2...].map { Int64($0) ?? 0 }
            let removed = texts(Int(min(max(counts[5], 0), Int64(valueLimit))))
            let added = texts(Int(min(max(counts[6], 0), Int64(valueLimit))))
            changes.append(
                Change(
                    member: head[0], kind: head[1], before: counts[0], after: counts[1], added: counts[2],
                    removed: counts[3], changed: counts[4], removedValues: removed.isEmpty ? nil : removed,
                    addedValues: added.isEmpty ? nil : added))
        }
        return changes
    }

    /// The jq program for other JSON. For each change it prints the member, its kind, five numbers, the numbers of the
    /// removed and of the added values, and these values. The order of the items of a list does not matter.
    private static let program = """
        def net($o; $n): [($o[] | [., -1]), ($n[] | [., 1])] | group_by(.[0]) | map([.[0][0], (map(.[1]) | add)]);
        def shown: tojson | if length > \(valueLength) then .[0:\(valueLength)] + "…" else . end;
        def values($removed; $added): $removed[0:\(valueLimit)] as $r | $added[0:\(valueLimit)] as $a
          | ($r | length), ($a | length), ($r[] | shown), ($a[] | shown);
        def members($keys; $from): [$keys[0:\(valueLimit)][] | {(.): $from[.]}];
        def difference($member; $o; $n):
          if $o == $n then empty
          elif ($o | type) == "array" and ($n | type) == "array" then
            net($o; $n) as $net
            | $member, "array", ($o | length), ($n | length), ([$net[] | .[1] | select(. > 0)] | add // 0),
              ([$net[] | .[1] | select(. < 0)] | add // 0 | -.), 0,
              values([$net[] | select(.[1] < 0) | .[0]]; [$net[] | select(.[1] > 0) | .[0]])
          elif ($o | type) == "object" and ($n | type) == "object" then
            [$n | keys_unsorted[] | select(. as $key | $o | has($key) | not)] as $added
            | [$o | keys_unsorted[] | select(. as $key | $n | has($key) | not)] as $removed
            | $member, "object", ($o | length), ($n | length), ($added | length), ($removed | length),
              ([$n | keys_unsorted[] | . as $key | select(($o | has($key)) and $o[$key] != $n[$key])] | length),
              values(members($removed; $o); members($added; $n))
          else $member, "value", 1, 1, 0, 0, 1, values([$o]; [$n]) end;
        .[0] as $o | .[1] as $n
        | difference(""; $o; $n),
          (if ($o | type) == "object" and ($n | type) == "object" then
             limit(\(memberLimit); $n | keys_unsorted[] | . as $key
               | select(($o | has($key)) and $o[$key] != $n[$key]) | [difference($key; $o[$key]; $n[$key])]) | .[]
           else empty end)
        """
}

extension ContentDifference.Items {
    /// One line for people.
    var sentence: String {
        var logged = [(added, "added"), (removed, "removed"), (changed, "changed")].filter { $0.0 > 0 }
            .map { "\($0.0) \($0.1)" }
        if isReordered == true { logged.append("in another order") }
        return "\(after) items, was \(before): " + (logged.isEmpty ? "the same" : logged.joined(separator: ", "))
    }
}

extension ContentDifference.Change {
    /// One line for people.
    var sentence: String {
        let counts = [(added, "added"), (removed, "removed"), (changed, "changed")].filter { $0.0 > 0 }
        let logged = counts.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
        switch kind {
        case "array": return "\(after) items, was \(before): " + (logged.isEmpty ? "in another order" : logged)
        case "object": return "\(after) members, was \(before): \(logged)"
        default:
            guard let new = addedValues?.first, let old = removedValues?.first else { return "another value" }
            return "\(new), was \(old)"
        }
    }
}
