import TestSupport
import Testing

@testable import FreshetUnpack

@Suite("Unpacking: the members of archives", .hangLimit)
struct MemberTests {
    let workshop: Workshop

    init() throws { workshop = try Workshop() }

    @Test("a dated directory matches a star, in tar and zip")
    func dated() throws {
        let members = "('Geo_20260714/COPYRIGHT', b'c'), ('Geo_20260714/Geo.mmdb', b'data')"
        let tar = try workshop.make("out(gzip.compress(tar(\(members))))")
        #expect(try workshop.text(tar, .tar, "Geo_*/Geo.mmdb") == "data")
        let zip = try workshop.make("out(zip(\(members)))")
        #expect(try workshop.text(zip, .zip, "Geo_*/Geo.mmdb") == "data")
    }

    @Test("a path is compared as text, also one that would lead out of a directory")
    func traversal() throws {
        let tar = try workshop.make(
            "out(tar(('../../etc/passwd', b'1'), ('/etc/passwd', b'2'), ('etc/passwd', b'3'), ('ü/é.txt', b'4')))")
        for (path, text) in [("../../etc/passwd", "1"), ("/etc/passwd", "2"), ("etc/passwd", "3"), ("ü/é.txt", "4")] {
            #expect(try workshop.text(tar, .tar, path) == text)
        }
        #expect(TemporaryDirectory.names(workshop.directory.path) == ["in", "out", "script.py"])
    }

    @Test("a missing member: the error names a similar one, or the first ones")
    func missing() throws {
        let tar = try workshop.make("out(tar(('./a/x.csv', b'1'), ('b', b'2'), ('c', b'3'), ('d', b'4')))")
        #expect(workshop.error(tar, .tar, "x.csv") == "the archive has no member 'x.csv'; did you mean './a/x.csv'?")
        #expect(
            workshop.error(tar, .tar, "y") == "the archive has no member 'y'; it has './a/x.csv', 'b', 'c' and 1 more")
        let one = try workshop.make("out(zip(('only', b'1')))")
        #expect(workshop.error(one, .zip, "y") == "the archive has no member 'y'; it has 'only'")
        #expect(workshop.error(try workshop.make("out(tar())"), .tar, "y") == "the archive has no members")
        #expect(workshop.error(try workshop.make("out(zip())"), .zip, "y") == "the archive has no members")
    }

    @Test("two members with the path, or two that match, are an error")
    func several() throws {
        let same = try workshop.make("out(tar(('a', b'old'), ('b', b''), ('a', b'new')))")
        #expect(workshop.error(same, .tar, "a")?.hasPrefix("the archive has several members 'a'") == true)
        let zip = try workshop.make(
            "import warnings; warnings.simplefilter('ignore'); out(zip(('a', b'1'), ('a', b'2')))")
        #expect(workshop.error(zip, .zip, "a")?.hasPrefix("the archive has several members 'a'") == true)
        let two = try workshop.make("out(tar(('1/a', b'1'), ('2/a', b'2')))")
        #expect(
            workshop.error(two, .tar, "*/a")
                == "several members match '*/a': '1/a' and '2/a'; write the path of one of them")
    }

    @Test(
        "a member that is not a file is an error",
        arguments: [
            ("tarfile.SYMTYPE, '/etc/passwd'", "a symbolic link"), ("tarfile.LNKTYPE, 'b'", "a link"),
            ("tarfile.DIRTYPE", "a directory"), ("tarfile.FIFOTYPE", "a FIFO"), ("tarfile.CHRTYPE", "a device"),
            ("tarfile.BLKTYPE", "a device"),
        ])
    func kinds(_ kind: String, _ name: String) throws {
        let tar = try workshop.make("out(tar(('b', b'x'), ('a', kind(\(kind)))))")
        #expect(
            workshop.error(tar, .tar, "a")?.contains(" is \(name), not a file; set 'unpack' to the path of a file")
                == true)
        #expect(try workshop.text(tar, .tar, "b") == "x")
    }

    @Test("an encrypted member is an error that says so")
    func encrypted() {
        #expect(workshop.error(Workshop.encrypted, .zip, "s.txt")?.hasPrefix("the member 's.txt' is encrypted") == true)
    }

    @Test("long names and very many members are errors")
    func bounds() throws {
        let long = try workshop.make("out(tar(('x' * 5000, b'1'), ('a', b'2')))")
        #expect(workshop.error(long, .tar, "a")?.contains("longer than 4096 bytes") == true)
        let script = """
            head = bytearray(tar(('a%06d', b''))[:512])
            def member(number):
                head[0:7] = b'a%06d' % number
                head[148:156] = b' ' * 8
                head[148:156] = b'%06o\\0 ' % sum(head)
                return bytes(head)
            out(b''.join(member(n) for n in range(COUNT)) + bytes(1024))
            """
        let most = try workshop.make(script.replacing("COUNT", with: "100000"))
        #expect(try workshop.text(most, .tar, "a099999") == "")
        let more = try workshop.make(script.replacing("COUNT", with: "100001"))
        #expect(workshop.error(more, .tar, "a000000") == "the archive has more than 100000 members")
    }
}

@Suite("Unpacking: limits on the output", .hangLimit)
struct OutputLimitTests {
    let workshop: Workshop

    init() throws { workshop = try Workshop() }

    @Test("more than check.max-bytes is an error, and exactly as many are not")
    func size() throws {
        let bytes = try workshop.make("out(gzip.compress(os.urandom(100_000)))")
        #expect(try workshop.unpack(bytes, .gzip, maxOutput: 100_000).count == 100_000)
        #expect(
            workshop.error(bytes, .gzip, maxOutput: 99_999)
                == "the unpacked content has more than 99999 bytes; raise check.max-bytes if that is right")
    }

    @Test(
        "a bomb is an error, whatever check.max-bytes is",
        arguments: [
            ("bz2.compress(bytes(50_000_000))", UnpackRequest.Format.bzip2), ("lzma.compress(bytes(50_000_000))", .xz),
            ("gzip.compress(bytes(100_000_000))", .gzip), ("bz2.compress(tar(('a', bytes(50_000_000))))", .tar),
            ("bz2.compress(tar(('a', b'small'), ('b', bytes(50_000_000))))", .tar),
            ("bz2.compress(tar(('a', b'small')) + bytes(50_000_000))", .tar),
        ])
    func bomb(_ script: String, _ format: UnpackRequest.Format) throws {
        let bytes = try workshop.make("out(\(script))")
        let error = workshop.error(bytes, format, "a", maxOutput: .max)
        #expect(error?.hasPrefix("the answer unpacks to more than 1000 times its size") == true, "\(error ?? "none")")
    }

    @Test("the holes of a sparse member count too")
    func sparse() throws {
        let bytes = try workshop.make(
            "os.system('truncate -s 1T a && tar --sparse --create --file=out a')")
        #expect(
            workshop.error(bytes, .tar, "a", maxOutput: .max)?
                .hasPrefix("the answer unpacks to more than 1000 times its size") == true)
    }

    @Test("a sparse member has zero bytes in its holes, also at its end")
    func holes() throws {
        let bytes = try workshop.make(
            """
            with open('a', 'wb') as file:
                file.seek(100_000)
                file.write(b'middle')
                file.truncate(300_000)
            os.system('tar --sparse --create --file=out a')
            """)
        let content = try workshop.unpack(bytes, .tar, "a")
        #expect(content.count == 300_000 && content.count { $0 != 0 } == 6)
        #expect(Array(content[100_000..<100_006]) == Array("middle".utf8))
    }

    @Test("a short answer of 1 MiB is not a bomb")
    func slack() throws {
        let bytes = try workshop.make("out(bz2.compress(bytes(1 << 20)))")
        #expect(try workshop.unpack(bytes, .bzip2).count == 1 << 20)
    }
}
