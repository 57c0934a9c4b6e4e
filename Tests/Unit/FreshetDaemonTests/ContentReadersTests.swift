import FreshetPipelines
import FreshetVarlink
import Testing

@testable import FreshetDaemon

@Suite("Readers of a published file")
struct ContentReadersTests {
    private let readers = ContentReaders(owner: 990, ownGroup: 991)

    private func peer(_ user: UInt32, _ groups: UInt32...) -> VarlinkPeer {
        VarlinkPeer(
            processIdentifier: 1, user: user, group: groups.first ?? user,
            supplementaryGroups: Array(groups.dropFirst()))
    }

    private func set(mode: UInt32, group: String? = nil) {
        var definition = PipelineDefinition(
            name: "a", source: .file("/data"), refresh: RefreshPolicy(), cache: CacheRules(file: "a"))
        definition.cache.mode = mode
        definition.cache.group = group
        readers.set(definition)
    }

    @Test("are root, the owner, the group and others, as the mode says")
    func modes() {
        set(mode: 0o644)
        #expect(readers.isPublic("a") && readers.mayRead("a", peer(1_000)))
        set(mode: 0o640)
        #expect(!readers.isPublic("a") && !readers.mayRead("a", peer(1_000)))
        #expect(readers.mayRead("a", peer(0)) && readers.mayRead("a", peer(990)))
        #expect(readers.mayRead("a", peer(1_000, 991)) && readers.mayRead("a", peer(1_000, 5, 991)))
        set(mode: 0o604)
        // The group's bits count for its members, and no others.
        #expect(!readers.mayRead("a", peer(1_000, 991)) && readers.mayRead("a", peer(1_000)))
        set(mode: 0o600)
        #expect(!readers.mayRead("a", peer(1_000, 991)) && readers.mayRead("a", peer(0)))
    }

    @Test("with a group of the configuration are its members; a group that does not exist has none")
    func groups() {
        readers.know(["web": 33])
        set(mode: 0o640, group: "web")
        #expect(readers.mayRead("a", peer(1_000, 33)) && !readers.mayRead("a", peer(1_000, 991)))
        set(mode: 0o640, group: "none")
        #expect(!readers.mayRead("a", peer(1_000, 33)) && !readers.mayRead("a", peer(1_000, 991)))
    }

    @Test("of a pipeline that is not known are root and the owner")
    func unknown() {
        #expect(readers.mayRead("b", peer(0)) && readers.mayRead("b", peer(990)))
        #expect(!readers.mayRead("b", peer(1_000, 991)) && !readers.isPublic("b"))
        set(mode: 0o644)
        readers.remove("a")
        #expect(!readers.mayRead("a", peer(1_000)))
    }
}
