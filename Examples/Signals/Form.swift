public import FreshetSignals

/// A form whose fields are checked while it is filled in, one of them by asking a server.
public struct Form: Sendable {
    /// What can be sent.
    public struct Account: Sendable, Equatable {
        public var name: String
        public var password: String
    }

    /// The fields, to be set by whoever types.
    public let name = CurrentValue("")
    public let password = CurrentValue("")
    public let repetition = CurrentValue("")

    let isFree: @Sendable (_ name: String) async throws -> Bool

    /// - Parameter isFree: Asks whether nobody has this name yet.
    public init(isFree: @escaping @Sendable (_ name: String) async throws -> Bool) {
        self.isFree = isFree
    }

    /// The account, as long as all fields are right; else nil.
    public func account(
        quiet: Duration = .milliseconds(300), clock: some Clock<Duration> = ContinuousClock()
    ) -> some AsyncSequence<Account?, Never> & Sendable {
        combineLatest(checkedName(quiet, clock), checkedPassword)
            .map { name, password in
                guard let name, let password else { return nil }
                return Account(name: name, password: password)
            }
            .removeDuplicates()
    }

    /// Nil from each change on, until the name has come to rest and was found to be free.
    func checkedName(_ quiet: Duration, _ clock: some Clock<Duration>) -> some AsyncSequence<String?, Never> & Sendable
    {
        name
            .removeDuplicates()
            .map { name in
                Emitter<String?, any Error>.once {
                    guard name.count >= 3 else { return nil }
                    try await clock.sleep(for: quiet)
                    return try await isFree(name) ? name : nil
                }
                .replaceError(with: nil)
                .prepend(nil)
            }
            .switchToLatest()
    }

    var checkedPassword: some AsyncSequence<String?, Never> & Sendable {
        combineLatest(password, repetition).map { $0 == $1 && $0.count >= 8 ? $0 : nil }
    }
}
