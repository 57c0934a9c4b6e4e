import ControlTestSupport
import FreshetControl
import FreshetRender
import TestSupport
import Testing

@testable import FreshetCommands

@Suite("Difference by item")
struct ItemDifferenceTests {
    private func list(_ text: String, _ key: String = ".id") throws -> ItemList {
        try ItemList(Array(text.utf8), key: try #require(KeyPath(key)))
    }

    private func lines(_ old: String, _ new: String, _ key: String = ".id") throws -> [String] {
        let lists = (try list(old, key), try list(new, key))
        return ItemDifferenceView(
            difference: ItemDifference(from: lists.0, to: lists.1), old: lists.0, new: lists.1
        ).lines(Palette(isColourful: false))
    }

    @Test("a difference lists the items that were added, removed, changed and moved")
    func kinds() throws {
        let old = #"[{"id": "a", "v": 1}, {"id": "b"}, {"id": "c"}, {"id": "d"}, {"id": 7, "v": [1, 2]}]"#
        let new = #"[{"id":"d"}, {"id":"a","v":2}, {"id":"c"}, {"id":7,"v":[1,2]}, {"id":"e ]\""}]"#
        #expect(
            try lines(old, new) == [
                #"- "b": {"id":"b"}"#,
                #"> "d": moved from 4 to 1"#,
                #"! "a":"#, #"  - {"id":"a","v":1}"#, #"  + {"id":"a","v":2}"#,
                #"+ "e ]\"": {"id":"e ]\""}"#,
            ])
        #expect(try lines(old, old) == [])
        #expect(try lines("[]", "[ ]") == [])
        #expect(try lines("[1, 2, 3]", "[2,3,4]", ".") == ["- 1: 1", "+ 4: 4"])
        #expect(
            try lines(#"[{"m":{"n":1},"m":{"n":2}}]"#, #"[{"m":{"n":2}}]"#, ".m.n") == [
                "! 2:", #"  - {"m":{"n":1},"m":{"n":2}}"#, #"  + {"m":{"n":2}}"#,
            ])
    }

    @Test("keys are equal if their bytes are equal, not if they look the same")
    func normalization() throws {
        let (composed, decomposed) = ("\u{E9}", "e\u{301}")
        #expect(composed == decomposed)
        let both = #"[{"id":"\#(composed)"},{"id":"\#(decomposed)"}]"#
        #expect(try list(both).items.count == 2)
        #expect(
            try lines(both, #"[{"id":"\#(decomposed)"}]"#).map { Array($0.utf8) } == [
                Array(#"- "\#(composed)": {"id":"\#(composed)"}"#.utf8)
            ])
    }

    @Test("an item that changed and moved is shown as both, and control characters are escaped")
    func changedAndMoved() throws {
        #expect(
            try lines(#"[{"id":1},{"id":2},{"id":3,"v":"x"}]"#, "[{\"id\":3,\"v\":\"\u{202E}\"},{\"id\":1},{\"id\":2}]")
                == [
                    "! 3: moved from 3 to 1", #"  - {"id":3,"v":"x"}"#, #"  + {"id":3,"v":"\u{202e}"}"#,
                ])
    }

    @Test("the JSON of a difference contains the items unchanged")
    func json() throws {
        let lists = (try list(#"[{"id":"a"},{"id":"b"}]"#), try list(#"[{"id":"b"},{"id":"a","v":null}]"#))
        let view = ItemDifferenceView(
            difference: ItemDifference(from: lists.0, to: lists.1), old: lists.0, new: lists.1)
        let change =
            #"{"change":"changed","key":"a","moved":true,"oldIndex":0,"old":{"id":"a"},"newIndex":1,"new":{"id":"a","v":null}}"#
        let other =
            #"{"change":"moved","key":"b","moved":true,"oldIndex":1,"old":{"id":"b"},"newIndex":0,"new":{"id":"b"}}"#
        let text = view.json(from: 1, to: 2)
        // Either of the two items may stay in place.
        #expect(text.hasPrefix(#"{"by":"item","changes":[{"#) && text.hasSuffix(#"],"from":1,"to":2}"#))
        #expect(text.contains(change) != text.contains(other))
    }

    @Test("a difference applied to the old list gives the new list, for random lists, with the fewest moves")
    func property() throws {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<500 {
            func someList() -> [(key: Int, value: Int)] {
                let count = Int.random(in: 0...12, using: &random)
                return (0..<16).shuffled(using: &random).prefix(count).map {
                    ($0, Int.random(in: 0...1, using: &random))
                }
            }
            func text(_ list: [(key: Int, value: Int)]) -> String {
                "[" + list.map { #"{"id":\#($0.key),"v":\#($0.value)}"# }.joined(separator: ",") + "]"
            }
            let (old, new) = (someList(), someList())
            let difference = ItemDifference(from: try list(text(old)), to: try list(text(new)))
            var result = old
            result.removeAll { item in
                difference.changes.contains { $0.key.description == "\(item.key)" && ($0.new == nil || $0.hasMoved) }
            }
            for change in difference.changes {
                guard let place = change.new else { continue }
                if change.hasMoved || change.kind == .added {
                    result.insert(new[place], at: place)
                } else if change.kind == .changed {
                    result[place] = new[place]
                }
            }
            #expect(result.map(\.key) == new.map(\.key) && result.map(\.value) == new.map(\.value), "\(old) \(new)")
        }
    }

    @Test("a difference keeps as many items in place as possible")
    func longestRise() {
        #expect(ItemDifference.longestRise(of: []) == [])
        #expect(ItemDifference.longestRise(of: [0, 1, 2]) == [true, true, true])
        #expect(ItemDifference.longestRise(of: [4, 0, 1, 2, 3]) == [false, true, true, true, true])
        #expect(ItemDifference.longestRise(of: [3, 2, 1]).count { $0 } == 1)
        #expect(ItemDifference.longestRise(of: [2, 5, 3, 7, 4, 6]).count { $0 } == 4)
    }

    @Test("content that is not a list with keys has no difference, and the error says why")
    func errors() throws {
        func error(_ text: String, _ key: String = ".id") -> ItemListError? {
            #expect(throws: ItemListError.self) { try list(text, key) }
        }
        for text in ["", "{}", "[", "[1,]", "[1] 2", "nonsense"] { #expect(error(text, ".") == .notAnArray) }
        #expect(error(#"[{"id":1},{"name":2}]"#) == .noKey(item: 1, path: ".id"))
        #expect(error(#"[{"id":{}}]"#) == .noKey(item: 0, path: ".id"))
        #expect(error(#"[{"id":null}]"#) == .noKey(item: 0, path: ".id"))
        #expect(error("[[1]]", ".id") == .noKey(item: 0, path: ".id"))
        #expect(error(#"[{"id":"a"},{"id":"a"}]"#) == .keyTwice(#""a""#))
        let deep = String(repeating: "[", count: 100) + String(repeating: "]", count: 100)
        #expect(error(deep, ".") == .notAnArray)
    }

    @Test(
        "the path of a key consists of names after dots",
        arguments: [
            (".", []), (".id", ["id"]), (".a.b-c_1", ["a", "b-c_1"]), ("id", nil), ("", nil), ("..", nil), (".a.", nil),
            (".a b", nil), (".a[0]", nil),
        ] as [(String, [String]?)])
    func paths(text: String, names: [String]?) {
        #expect(KeyPath(text)?.names == names)
        if names != nil { #expect(KeyPath(text)?.text == text) }
    }
}

@Suite("Difference by line", .serialized, .hangLimit)
struct LineDifferenceTests {
    private func unified(_ old: String, _ new: String) throws -> String {
        String(decoding: try LineDifference.unified(Array(old.utf8), Array(new.utf8)), as: UTF8.self)
    }

    @Test("a difference by line is that of diff(1), without file names")
    func unified() throws {
        #expect(try unified("a\nb\nc\n", "a\nB\nc\n") == "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n")
        #expect(try unified("a", "a\n") == "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n")
        #expect(try unified("same\n", "same\n") == "")
        #expect(try unified("", "") == "")
        #expect(try unified("", "new\n") == "@@ -0,0 +1 @@\n+new\n")
    }

    @Test("large contents without a common line are compared in bounded time")
    func large() throws {
        let old = (0..<50_000).map { "old \($0)\n" }.joined()
        let new = (0..<50_000).map { "new \($0)\n" }.joined()
        let hunks = LineHunk.hunks(of: try LineDifference.unified(Array(old.utf8), Array(new.utf8)))
        #expect(hunks.map(\.lines.count) == [100_000])
    }

    @Test("a difference is split into hunks, with the kind of change of each line")
    func hunks() throws {
        let old = (1...30).map { "\($0)\n" }.joined()
        let new = (1...30).map { $0 == 2 ? "two\n" : $0 == 29 ? "" : "\($0)\n" }.joined()
        let hunks = LineHunk.hunks(of: Array(try unified(old, new).utf8))
        #expect(hunks.map(\.oldStart) == [1, 26] && hunks.map(\.newStart) == [1, 26])
        #expect(hunks[0].lines.map(\.change) == ["same", "removed", "added", "same", "same", "same"])
        #expect(hunks[1].lines.first { $0.change == "removed" }?.text == "29")
        #expect(LineHunk.hunks(of: Array("-stray\n".utf8)).isEmpty)
    }

    private func service(_ contents: [Int64: String]) -> ScriptedService {
        let service = ScriptedService(["jwks"])
        service.change { script in
            let newest = contents.keys.max()
            script.history = contents.keys.sorted(by: >).map { number in
                PastGeneration(
                    number: number, committedAt: 0, size: Int64(contents[number]?.utf8.count ?? 0), digest: "ab",
                    current: number == newest)
            }
            script.history.append(PastGeneration(number: 1, committedAt: 0, size: 1, digest: "ab", kept: false))
            script.contents = contents.mapValues { Array($0.utf8) }
        }
        return service
    }

    private func check(
        _ line: String, _ contents: [Int64: String], status: CommandStatus = .success, output: String = "",
        printError: String = "", sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await expect(
            line, of: service(contents), status: status, output: output, printError: printError,
            sourceLocation: sourceLocation)
    }

    @Test("diff compares the current copy with the one before it, or the named generations")
    func verb() async throws {
        let contents: [Int64: String] = [2: "a\n", 3: "b\n", 4: "c\n"]
        try await check("diff jwks", contents, output: "--- jwks 3\n+++ jwks 4\n@@ -1 +1 @@\n-b\n+c\n")
        try await check("diff jwks 2", contents, output: "--- jwks 2\n+++ jwks 4\n@@ -1 +1 @@\n-a\n+c\n")
        try await check("diff jwks 4 2", contents, output: "--- jwks 4\n+++ jwks 2\n@@ -1 +1 @@\n-c\n+a\n")
        try await check("diff jwks 3 3", contents, printError: "generations 3 and 3 are the same\n")
        try await check(
            "diff jwks 3 4 --json", contents,
            output: #"{"by":"line","from":3,"hunks":[{"lines":[{"change":"removed","text":"b"},{"change":"added","#
                + #""text":"c"}],"newStart":1,"oldStart":1}],"to":4}"# + "\n")
        try await check(
            "diff jwks 1", contents, status: .failure,
            printError:
                "freshetctl: generation 1 of 'jwks' is not kept; kept: 2, 3, 4; cache.keep sets how many are kept\n")
        try await check(
            "diff jwks", [2: "a"], status: .failure,
            printError:
                "freshetctl: no older generation of 'jwks' is kept; kept: 2; cache.keep sets how many are kept\n"
        )
    }

    @Test("diff compares items if a key is named")
    func keys() async throws {
        let contents: [Int64: String] = [2: #"[{"id":"a"},{"id":"b"}]"#, 3: #"[{"id":"b"},{"id":"c"}]"#, 4: "text\n"]
        try await check(
            "diff jwks 2 3 --key .id", contents,
            output: """
                --- jwks 2
                +++ jwks 3
                - "a": {"id":"a"}
                + "c": {"id":"c"}

                1 added, 1 removed, 0 changed, 0 moved.

                """)
        try await check("diff jwks 2 2 --key .id", contents, printError: "generations 2 and 2 are the same\n")
        try await check(
            "diff jwks --key .id", contents, status: .failure,
            printError:
                "freshetctl: the content of generation 4 is not a JSON array; without --key it is compared line by line\n"
        )
        try await check(
            "diff jwks 2 2 --key .id --json", contents, output: #"{"by":"item","changes":[],"from":2,"to":2}"# + "\n")
    }

    @Test("diff uses the configured key, and compares lines if the content has no keys or --lines is given")
    func configuredKey() async throws {
        let contents: [Int64: String] = [2: #"[{"id":"a"}]"# + "\n", 3: #"[{"id":"b"}]"# + "\n", 4: "text\n"]
        func check(
            _ line: String, status: CommandStatus = .success, output: String = "", printError: String = ""
        ) async throws {
            let service = service(contents)
            service.change { $0.key = ".id" }
            try await expect(line, of: service, status: status, output: output, printError: printError)
        }
        try await check(
            "diff jwks 2 3",
            output: """
                --- jwks 2
                +++ jwks 3
                - "a": {"id":"a"}
                + "b": {"id":"b"}

                1 added, 1 removed, 0 changed, 0 moved.

                """)
        let lines = "--- jwks 2\n+++ jwks 3\n@@ -1 +1 @@\n-[{\"id\":\"a\"}]\n+[{\"id\":\"b\"}]\n"
        try await check("diff jwks 2 3 --lines", output: lines)
        try await check(
            "diff jwks 3 4", output: "--- jwks 3\n+++ jwks 4\n@@ -1 +1 @@\n-[{\"id\":\"b\"}]\n+text\n")
        try await check(
            "diff jwks 2 3 --key .", status: .failure,
            printError:
                "freshetctl: the content of generation 2 has an item without a key: number 1 has no text or number at "
                + ".; without --key it is compared line by line\n")
    }

    @Test("history counts changed items if a generation and the one before are kept and have keys")
    func history() async throws {
        let contents: [Int64: String] = [
            2: #"[{"id":"a"},{"id":"b"},{"id":"c"}]"#, 3: #"[{"id":"b"},{"id":"a","x":1},{"id":"d"}]"#, 4: "text\n",
            5: "[]", 6: "[]",
        ]
        let service = service(contents)
        try await expect(
            "history jwks --key .id --json", of: service,
            output: #"{"generations":["#
                + [Int64](1...6).reversed().map { number in
                    let items =
                        switch number {
                        case 6: #""items":{"added":0,"changed":0,"moved":0,"removed":0},"#
                        case 3: #""items":{"added":1,"changed":1,"moved":1,"removed":1},"#
                        default: ""
                        }
                    let size = contents[number]?.utf8.count ?? 1
                    return #"{"committedAt":0,"current":\#(number == 6),"digest":"ab",\#(items)"kept":\#(number > 1),"#
                        + #""number":\#(number),"size":\#(size)}"#
                }.joined(separator: ",") + #"],"key":".id"}"# + "\n")
        service.change { $0.key = ".id" }
        try await expect(
            "history jwks --no-legend -n 4", of: service,
            output: """
                6 current Thu 1970-01-01 00:00:00 UTC  2 B same        ab - -
                5 kept    Thu 1970-01-01 00:00:00 UTC  2 B -           ab - -
                4 kept    Thu 1970-01-01 00:00:00 UTC  5 B -           ab - -
                3 kept    Thu 1970-01-01 00:00:00 UTC 40 B +1 -1 !1 >1 ab - -

                """)
    }

    @Test("content that is not text, or is too large, has no difference")
    func limits() async throws {
        try await check(
            "diff jwks", [2: "a\0", 3: "b\0"], status: .failure,
            printError: "freshetctl: generations 2 and 3 differ, and are not text\n")
        try await check("diff jwks 3 3", [3: "b\0"], printError: "generations 3 and 3 are the same\n")
        let none = #"{"by":"line","from":3,"hunks":[],"to":3}"# + "\n"
        for content in ["b\0", "b\n"] { try await check("diff jwks 3 3 --json", [3: content], output: none) }
        let service = service([2: "a", 3: "b"])
        service.change { $0.history[0].size = Comparison.mostBytes + 1 }
        let transcript = Transcript()
        try await withControlServer(service) { path in
            #expect(freshetctl("diff jwks", transcript, socket: path) == .failure)
        }
        #expect(
            transcript.printError.hasPrefix(
                "freshetctl: generation 3 has 64 MiB; the limit for a comparison is 64 MiB; "))
    }
}
