import FreshetModel
import FreshetPipelines
import Testing

@testable import FreshetEmitters

@Suite("Access tokens")
struct TokenMachineTests {
    private let begin = BootInstant.now
    private let refusal = RunFailure(.refused, "no")

    private func at(_ seconds: Int) -> BootInstant { begin.advanced(by: .seconds(seconds)) }

    @Test("a token is used until shortly before its end; without a statement for an hour")
    func life() {
        var machine = TokenMachine()
        #expect(machine.ask(since: 0, refused: nil, at: begin) == .request)
        machine.received("one", life: .seconds(600), from: begin)
        #expect(machine.ask(since: 1, refused: nil, at: at(569)) == .use("one"))
        #expect(machine.ask(since: 1, refused: nil, at: at(570)) == .request)
        // Of a short life, a tenth is left.
        machine.received("two", life: .seconds(20), from: begin)
        #expect(machine.ask(since: 2, refused: nil, at: at(17)) == .use("two"))
        #expect(machine.ask(since: 2, refused: nil, at: at(18)) == .request)
        machine.received("three", life: nil, from: begin)
        #expect(machine.ask(since: 3, refused: nil, at: at(3_569)) == .use("three"))
        #expect(machine.ask(since: 3, refused: nil, at: at(3_570)) == .request)
    }

    @Test("callers that waited share the result of a request: a token, even if it ends immediately, or the failure")
    func shared() {
        var machine = TokenMachine()
        machine.received("one", life: .zero, from: begin)
        #expect(machine.ask(since: 0, refused: nil, at: at(5)) == .use("one"))
        #expect(machine.ask(since: 1, refused: nil, at: at(5)) == .request)
        machine.failed(refusal)
        #expect(machine.ask(since: 1, refused: nil, at: at(5)) == .fail(refusal))
        #expect(machine.ask(since: 2, refused: nil, at: at(5)) == .request)
    }

    @Test("a refused token is replaced once; callers with the same token share the new one")
    func refused() {
        var machine = TokenMachine()
        machine.received("one", life: nil, from: begin)
        #expect(machine.ask(since: 1, refused: "one", at: at(1)) == .request)
        machine.received("two", life: nil, from: at(1))
        #expect(machine.ask(since: 1, refused: "one", at: at(1)) == .use("two"))
        #expect(machine.ask(since: 2, refused: "one", at: at(1)) == .use("two"))
        // The server sends the same token again: there is no third request for the callers that waited.
        machine.received("two", life: nil, from: at(2))
        #expect(machine.ask(since: 2, refused: "two", at: at(2)) == .use("two"))
    }

    // MARK: Answers

    private func answer(_ text: String) throws -> TokenAnswer { try TokenAnswer(Array(text.utf8)) }

    @Test("an answer has the token and its life; other members are ignored")
    func answers() throws {
        let plain = try answer(#"{"access_token":"a.b-c~+/=","token_type":"Bearer","expires_in":3600}"#)
        #expect(plain.token == "a.b-c~+/=" && plain.life == .seconds(3_600))
        let other = try answer(
            #" { "x" : [ { "y" : [ true , null , 1e3 ] } , "\"}" ] , "token_type":"bEARER", "access_token" : "\u0061\/" }"#
        )
        #expect(other.token == "a/" && other.life == nil)
        #expect(try answer(#"{"access_token":"a","token_type":"bearer","expires_in":"20.9"}"#).life == .seconds(20))
        for (text, seconds) in [("-5", 0), ("1e300", TokenAnswer.longestLife)] {
            let answer = try answer(#"{"access_token":"a","token_type":"bearer","expires_in":\#(text)}"#)
            #expect(answer.life == .seconds(seconds), "\(text)")
        }
        #expect(try answer(#"{"access_token":"a","token_type":"bearer","expires_in":"soon"}"#).life == nil)
    }

    @Test(
        "anything else is an error that quotes nothing",
        arguments: [
            "", "null", "[]", "{", "{}", #"{"access_token":5,"token_type":"bearer"}"#, "<html>s3cret</html>",
            #"{"access_token":"s3cret"}"#, #"{"access_token":"s3cret","token_type":"mac"}"#,
            #"{"access_token":"s3c ret","token_type":"bearer"}"#, #"{"access_token":"","token_type":"bearer"}"#,
            #"{"access_token":"s3cret\r\nX-Other: 1","token_type":"bearer"}"#,
            #"{"access_token":"s3cret","token_type":"bearer"} x"#, #"{"access_token":"s3cret","token_type":"bearer",}"#,
            #"{"access_token":"s3cret","access_token":"other","token_type":"bearer"}"#,
            #"{"access_token":"\ud800","token_type":"bearer"}"#,
            #"{"access_token":"\ud800\u0041","token_type":"bearer"}"#,
            #"{"a":"# + String(repeating: "[", count: 100_000),
            #"{"access_token":""# + String(repeating: "a", count: 8_193) + #"","token_type":"bearer"}"#,
        ])
    func hostile(text: String) throws {
        let error = #expect(throws: TokenAnswer.ValidationError.self) { try answer(text) }
        #expect(error?.sentence.contains("s3c") == false)
    }

    @Test("a client's identifier, secret and scope are form-encoded")
    func encoding() throws {
        #expect(OAuth2Client.formEncoded("a b+ü:/~") == "a+b%2B%C3%BC%3A%2F%7E")
        let client = OAuth2Client(tokenURL: "https://a/", host: "a", identifier: "id:1", scope: "x y")
        guard case .post(let body, let type) = client.tokenRequest(withSecret: "s").method else {
            Issue.record("no POST")
            return
        }
        #expect(body == "grant_type=client_credentials&scope=x+y" && type == "application/x-www-form-urlencoded")
        #expect(client.tokenRequest(withSecret: "s").redirects == HTTPSource.Redirects.none)
    }
}
