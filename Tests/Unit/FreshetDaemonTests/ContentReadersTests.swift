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

    @Test("root, the owner, the group and others may read as the mode permits")
    func modes() {
        set(mode: 0o644)
        #expect(readers.isPublic("a") && readers.mayRead("a", peer(1_000)))
        set(mode: 0o640)
        #expect(!readers.isPublic("a") && !readers.mayRead("a", peer(1_000)))
        #expect(readers.mayRead("a", peer(0)) && readers.mayRead("a", peer(990)))
        #expect(readers.mayRead("a", peer(1_000, 991)) && readers.mayRead("a", peer(1_000, 5, 991)))
        set(mode: 0o604)
        // For members of the group, only the bits of the group count.
        #expect(!readers.mayRead("a", peer(1_000, 991)) && readers.mayRead("a", peer(1_000)))
        set(mode: 0o600)
        #expect(!readers.mayRead("a", peer(1_000, 991)) && readers.mayRead("a", peer(0)))
    }

    @Test("members of the configured group may read; a group that does not exist has no members")
    func groups() {
        readers.setGroups(["web": 33])
        set(mode: 0o640, group: "web")
        #expect(readers.mayRead("a", peer(1_000, 33)) && !readers.mayRead("a", peer(1_000, 991)))
        set(mode: 0o640, group: "none")
        #expect(!readers.mayRead("a", peer(1_000, 33)) && !readers.mayRead("a", peer(1_000, 991)))
    }

    @Test("only root and the owner may read an unknown pipeline")
    func unknown() {
        #expect(readers.mayRead("b", peer(0)) && readers.mayRead("b", peer(990)))
        #expect(!readers.mayRead("b", peer(1_000, 991)) && !readers.isPublic("b"))
        set(mode: 0o644)
        readers.remove("a")
        #expect(!readers.mayRead("a", peer(1_000)))
    }
}
