import Glibc
import TestSupport
import Testing

@testable import FreshetUnpack

/// Archives that a Python script writes to its standard output, and their unpacking in this process.
final class Workshop {
    let directory: TemporaryDirectory
    private let library: ArchiveLibrary

    init() throws {
        directory = try TemporaryDirectory(below: TemporaryDirectory.parentInMemory)
        library = try ArchiveLibrary()
    }

    /// The file `out` that a script makes in the test's directory.
    ///
    /// - Parameter script: it may use `tar(…)` and `zip(…)`, which take names with contents.
    func make(_ script: String) throws -> [UInt8] {
        let head = """
            import bz2, gzip, io, lzma, os, sys, tarfile, zipfile
            os.chdir(sys.argv[1])
            def tar(*members):
                file = io.BytesIO()
                with tarfile.open(fileobj=file, mode="w") as archive:
                    for name, content in members:
                        if isinstance(content, tarfile.TarInfo):
                            content.name = name
                            archive.addfile(content)
                            continue
                        member = tarfile.TarInfo(name)
                        member.size = len(content)
                        archive.addfile(member, io.BytesIO(content))
                return file.getvalue()
            def kind(type, target=""):
                member = tarfile.TarInfo()
                member.type, member.linkname = type, target
                return member
            def zip(*members):
                file = io.BytesIO()
                with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                    for name, content in members:
                        archive.writestr(name, content)
                return file.getvalue()
            def out(content):
                with open("out", "wb") as file:
                    file.write(content)

            """
        try directory.write(head + script, to: "script.py")
        let status = system("/usr/bin/python3 -I '\(directory.path("script.py"))' '\(directory.path)'")
        try #require(status == 0)
        return try TemporaryDirectory.read(directory.path("out"))
    }

    func unpack(
        _ bytes: [UInt8], _ format: UnpackRequest.Format, _ member: String = "", maxOutput: UInt64 = 64 << 20
    ) throws -> [UInt8] {
        try TemporaryDirectory.write(bytes, to: directory.path("in"))
        let descriptor = Glibc.open(directory.path("in"), O_RDONLY | O_CLOEXEC)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        var output: [UInt8] = []
        try ContentUnpacker(UnpackRequest(format, member: member, maxOutput: maxOutput), library)
            .unpack(try InputFile(descriptor)) { (bytes) throws(UnpackError) in output += bytes }
        return output
    }

    func text(_ bytes: [UInt8], _ format: UnpackRequest.Format, _ member: String = "") throws -> String {
        String(decoding: try unpack(bytes, format, member), as: UTF8.self)
    }

    /// Why it cannot be unpacked; nil: it can.
    func error(
        _ bytes: [UInt8], _ format: UnpackRequest.Format, _ member: String = "", maxOutput: UInt64 = 64 << 20
    ) -> String? {
        do {
            _ = try unpack(bytes, format, member, maxOutput: maxOutput)
            return nil
        } catch {
            return (error as? UnpackError)?.message ?? "\(error)"
        }
    }

    /// Bytes from hexadecimal digits.
    static func bytes(_ digits: String) -> [UInt8] {
        let digits = Array(digits.utf8)
        return stride(from: 0, to: digits.count, by: 2).compactMap {
            UInt8(String(decoding: digits[$0..<($0 + 2)], as: UTF8.self), radix: 16)
        }
    }

    /// ``table``, as `zstd` compresses it: Python has no module for it.
    static let zstd = bytes(
        "28b52ffd04581901006e616d652c636f756e7472790a312e312e312e312c41550a392e392e392e392c43480abab39f57")
    static let table = "name,country\n1.1.1.1,AU\n9.9.9.9,CH\n"

    /// A zip file with the encrypted member `s.txt`: `zip -P pw`.
    static let encrypted = bytes(
        "504b03040a00090000000d547b5de5e8a25c120000000600000005001c00732e7478745554090003395c096bc457096b75780b00"
            + "010400000000040000000089f0180f2fbda17ed36bb777220de9be351a504b0708e5e8a25c1200000006000000504b01021e03"
            + "0a00090000000d547b5de5e8a25c1200000006000000050018000000000001000000a48100000000732e7478745554050003395c"
            + "096b75780b000104000000000400000000504b050600000000010001004b000000610000000000")
}
