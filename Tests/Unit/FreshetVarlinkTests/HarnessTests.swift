import Testing
import ThreadTestSupport

@Suite("A body on a thread of its own")
struct HarnessTests {
    @Test("is known to be this test's, so that its failures are, and gives back what it throws")
    func belongs() async throws {
        struct Thrown: Error {}
        let name = try await onThread { Test.current?.name }.get()
        #expect(name == Test.current?.name && name != nil)
        await #expect(throws: Thrown.self) { try await onThread { throw Thrown() }.get() }
    }
}
