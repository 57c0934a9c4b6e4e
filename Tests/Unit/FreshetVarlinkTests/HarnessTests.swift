import Testing
import ThreadTestSupport

@Suite("A body on its own thread")
struct HarnessTests {
    @Test("belongs to the test, so that its failures count for the test, and its error is rethrown")
    func belongs() async throws {
        struct Thrown: Error {}
        let name = try await onThread { Test.current?.name }.get()
        #expect(name == Test.current?.name && name != nil)
        await #expect(throws: Thrown.self) { try await onThread { throw Thrown() }.get() }
    }
}
