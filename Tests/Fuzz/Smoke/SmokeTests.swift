import Glibc
import TestSupport
import Testing

/// The fuzz targets without libFuzzer: each reads its seeds, and reproducible mutations of them.
///
/// `FRESHET_SEEDS=7-7 Scripts/test only FuzzTests` runs the mutations of one seed.
@Suite("Each reader of bytes from outside", .hangLimit) struct SmokeTests {
    static let seeds: ClosedRange<UInt64> = {
        guard let text = getenv("FRESHET_SEEDS").map({ String(cString: $0) }) else { return 1...1 }
        let ends = text.split(separator: "-").compactMap { UInt64($0) }
        return ends.count == 2 && ends[0] <= ends[1] ? ends[0]...ends[1] : 1...1
    }()

    /// The number of mutations for one seed: all targets together take about twenty seconds in a build without
    /// optimization.
    private static func count(_ target: FuzzTarget) -> Int {
        switch target.name {
        case "index-rows": 100
        case "yaml", "hook": 3_000
        default: 10_000
        }
    }

    @Test("holds its rules for its seeds", arguments: FuzzTargets.all)
    func corpus(target: FuzzTarget) throws {
        let seeds = try Corpus.seeds(of: target)
        #expect(!seeds.isEmpty)
        for seed in seeds {
            #expect(throws: Never.self, "\(target.name)/\(seed.name)") { try target.check(seed.bytes) }
        }
    }

    @Test("holds its rules for mutations of its seeds", arguments: FuzzTargets.all, seeds)
    func mutations(target: FuzzTarget, seed: UInt64) throws {
        var mutator = Mutator(try Corpus.seeds(of: target).map(\.bytes), limit: target.limit, seed: seed)
        let record = try CurrentInput(target.name)
        for _ in 0..<Self.count(target) {
            let input = mutator.next()
            record.write(input)
            do throws(FuzzViolation) {
                try target.check(input)
            } catch {
                Issue.record(
                    "\(target.name), seed \(seed): \(error): \(String(reflecting: String(decoding: input, as: UTF8.self)))"
                )
                return
            }
        }
    }
}

/// Writes the present input to a file: if a trap ends the process, the file remains.
private final class CurrentInput {
    private let path: String
    private let descriptor: Int32

    init(_ target: String) throws {
        path = "\(TemporaryDirectory.parentInMemory)/freshet-fuzz-\(target)-\(getpid())"
        descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0, "\(path): errno \(errno)")
    }

    func write(_ bytes: [UInt8]) {
        pwrite(descriptor, bytes, bytes.count, 0)
        ftruncate(descriptor, bytes.count)
    }

    deinit {
        close(descriptor)
        unlink(path)
    }
}
