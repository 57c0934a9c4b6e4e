/// The wait of one answer for memory, as its run knows it. Call ``end()`` in any case.
struct MemoryWait: Sendable {
    private let places: RunPermits
    private let number: UInt64

    init(_ places: RunPermits) {
        self.places = places
        number = places.nextWait()
    }

    func begin(_ detail: String) { places.noteMemoryWait(number, detail) }
    func end() { places.noteMemoryWait(number, nil) }
}
