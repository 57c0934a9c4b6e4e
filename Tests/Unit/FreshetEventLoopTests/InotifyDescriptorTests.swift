import CLinux
import Glibc
import Testing

@testable import FreshetEventLoop

@Suite("Events of inotify")
struct InotifyDescriptorTests {
    private func bytes(_ watch: Int32, _ mask: UInt32, name: [UInt8]) -> [UInt8] {
        let words = [UInt32(bitPattern: watch), mask, 0, UInt32(name.count)]
        return words.flatMap { word in withUnsafeBytes(of: word) { Array($0) } } + name
    }

    private func parse(_ bytes: [UInt8]) -> [InotifyEvent] {
        var events: [InotifyEvent] = []
        bytes.withUnsafeBytes { InotifyEvent.parse($0) { events.append($0) } }
        return events
    }

    @Test("are parsed, and their names have no padding")
    func whole() {
        let read =
            bytes(1, UInt32(IN_CREATE), name: Array("regions".utf8) + [0]) + bytes(2, UInt32(IN_DELETE_SELF), name: [])
            + bytes(-1, UInt32(IN_Q_OVERFLOW), name: [])
        #expect(
            parse(read) == [
                InotifyEvent(1, .created, name: "regions"), InotifyEvent(2, .selfRemoved),
                InotifyEvent(-1, .overflowed),
            ])
    }

    @Test("that are truncated are ignored, wherever they are cut", arguments: 0..<40)
    func truncated(_ length: Int) {
        let read = bytes(1, UInt32(IN_CREATE), name: [97, 0, 0, 0]) + bytes(2, UInt32(IN_DELETE), name: [98, 0, 0, 0])
        #expect(parse(Array(read.prefix(length))).count == length / 20)
    }

    @Test("with a length beyond the buffer are ignored")
    func tooLong() {
        var read = bytes(1, UInt32(IN_CREATE), name: [])
        read.replaceSubrange(12..<16, with: [255, 255, 255, 255])
        #expect(parse(read).isEmpty)
    }
}
