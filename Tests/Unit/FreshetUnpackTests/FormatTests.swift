import TestSupport
import Testing

@testable import FreshetUnpack

@Suite("Unpacking: formats, ends and damage", .hangLimit)
struct FormatTests {
    let workshop: Workshop
    private static let content = "table = b'''\(Workshop.table)'''\n"

    init() throws { workshop = try Workshop() }

    /// Each format with ``Workshop/table``, and the member's path.
    private func samples() throws -> [(bytes: [UInt8], format: UnpackRequest.Format, member: String)] {
        let archive = "tar(('d/table.csv', table), ('other', b'x'))"
        var samples: [(bytes: [UInt8], format: UnpackRequest.Format, member: String)] = [(Workshop.zstd, .zstd, "")]
        for (script, format) in [
            ("gzip.compress(table)", UnpackRequest.Format.gzip), ("lzma.compress(table)", .xz),
            ("bz2.compress(table)", .bzip2),
        ] {
            samples.append((try workshop.make("\(Self.content)out(\(script))"), format, ""))
        }
        for script in [archive, "gzip.compress(\(archive))", "lzma.compress(\(archive))", "bz2.compress(\(archive))"] {
            samples.append((try workshop.make("\(Self.content)out(\(script))"), .tar, "d/table.csv"))
        }
        let zip = try workshop.make("\(Self.content)out(zip(('d/table.csv', table), ('other', b'x')))")
        return samples + [(zip, .zip, "d/table.csv")]
    }

    @Test("each format gives the content")
    func formats() throws {
        for (bytes, format, member) in try samples() {
            #expect(try workshop.text(bytes, format, member) == Workshop.table, "\(format)")
        }
    }

    @Test("no beginning of compressed data unpacks, and one of an archive unpacks to nothing but the whole member")
    func truncated() throws {
        for (bytes, format, member) in try samples() {
            let isPlain = format == .tar && Signature.format(of: bytes) == .tar
            for count in bytes.indices where !isPlain || count % 64 == 0 {
                let text = try? workshop.text(Array(bytes[..<count]), format, member)
                #expect(text == nil || isPlain && text == Workshop.table, "\(format), \(count) bytes")
            }
        }
    }

    @Test("a changed byte is an error, or changes nothing")
    func damaged() throws {
        for (bytes, format, member) in try samples() where format != .tar || Signature.format(of: bytes) != .tar {
            for index in bytes.indices {
                var damaged = bytes
                damaged[index] ^= 0x41
                let text = try? workshop.text(damaged, format, member)
                #expect(text == nil || text == Workshop.table, "\(format), byte \(index)")
            }
        }
    }

    @Test("contents one after the other become one, as with the format's own program")
    func several() throws {
        for (bytes, format, member) in try samples() where !format.isArchive {
            #expect(try workshop.text(bytes + bytes, format, member) == Workshop.table + Workshop.table, "\(format)")
        }
    }

    @Test("zero bytes after gzip, xz and bzip2 are padding; any other data there is an error")
    func rest() throws {
        for (bytes, format, member) in try samples() where !format.isArchive {
            if format != .zstd {
                let padded = bytes + [UInt8](repeating: 0, count: 100_000)
                #expect(try workshop.text(padded, format, member) == Workshop.table, "\(format)")
            }
            for rest in ["garbage", "\0\0garbage", "\0\0\0\0\u{1f}", "\u{1f}\u{0b}"] {
                #expect(workshop.error(bytes + rest.utf8, format, member) != nil, "\(format) \(rest)")
            }
        }
        let gzip = try workshop.make("out(gzip.compress(b'x'))")
        #expect(workshop.error(gzip + [0] + gzip, .gzip)?.contains("other data follows") == true)
        #expect(workshop.error(gzip + Array("hello".utf8), .gzip)?.contains("other data follows") == true)
    }

    @Test("compressed data in compressed data is unpacked once")
    func nested() throws {
        let inner = try workshop.make("out(lzma.compress(b'x'))")
        let outer = try workshop.make("out(lzma.compress(open('out', 'rb').read()))")
        #expect(try workshop.unpack(outer, .xz) == inner)
    }

    @Test("an empty answer is an error, and compressed emptiness is an empty content")
    func empty() throws {
        for format in UnpackRequest.Format.allCases {
            #expect(workshop.error([], format, "a") == "the answer is empty")
        }
        for (script, format) in [("gzip", UnpackRequest.Format.gzip), ("lzma", .xz), ("bz2", .bzip2)] {
            #expect(try workshop.unpack(try workshop.make("out(\(script).compress(b''))"), format) == [])
        }
        #expect(try workshop.unpack(try workshop.make("out(gzip.compress(tar(('a', b''))))"), .tar, "a") == [])
    }

    @Test("an answer of another format: the error has its first bytes and a remedy")
    func mismatch() throws {
        let page = Array("<!doctype html>".utf8)
        #expect(
            workshop.error(page, .gzip) == "the answer is not gzip: it begins with 3c 21 64 6f 63 74 79 70 "
                + "('<!doctyp'); if the answer is unpacked already, remove 'unpack'")
        #expect(
            workshop.error(Workshop.zstd, .gzip) == "the answer is not gzip: it begins with 28 b5 2f fd 04 58 19 01, "
                + "as zstd does; set unpack: zstd")
        #expect(
            workshop.error(Workshop.encrypted, .tar, "a")
                == "the answer is not tar: it begins with 50 4b 03 04 0a 00 09 00, as zip does; set unpack: zip:PATH")
        #expect(workshop.error(page, .tar, "a")?.hasPrefix("the answer is not tar: it begins with 3c") == true)
        #expect(workshop.error(page, .zip, "a")?.hasPrefix("the answer is not zip: it begins with 3c") == true)
        let packed = try workshop.make("out(gzip.compress(b'no archive' * 1000))")
        #expect(workshop.error(packed, .tar, "a") == "the decompressed answer is not tar")
    }
}
