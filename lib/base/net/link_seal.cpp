#include "base/net/link_seal.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <cassert>
#include <span>

#include "base/error.hpp"

namespace lockstep {
namespace {

using Secret = std::array<unsigned char, 32>;
using SealBytes = std::array<unsigned char, crypto_auth_BYTES>;
static_assert(sizeof(Secret) == crypto_auth_KEYBYTES && sizeof(Secret) == crypto_generichash_KEYBYTES);
static_assert(2 * sizeof(Secret) == secret_text_length);
static_assert(2 * sizeof(SealBytes) + 1 == LinkSeal::added_length);
static_assert(sizeof(LinkSeal::Tag) == crypto_onetimeauth_BYTES && sizeof(Secret) == crypto_onetimeauth_KEYBYTES);

// May be called more than once, and from several threads.
void start_libsodium() {
  [[maybe_unused]] const int code = ::sodium_init();
  assert(code >= 0);
}

std::string text_of(std::span<const unsigned char, 32> bytes) {
  std::string text(2 * bytes.size() + 1, '\0');  // libsodium appends a zero byte
  ::sodium_bin2hex(text.data(), text.size(), bytes.data(), bytes.size());
  text.pop_back();
  return text;
}

// The text must consist of exactly the digits of 32 bytes.
std::optional<Secret> bytes_of(std::string_view text) {
  Secret bytes{};
  std::size_t length = 0;
  if (text.size() != secret_text_length ||
      ::sodium_hex2bin(bytes.data(), bytes.size(), text.data(), text.size(), nullptr, &length, nullptr) != 0 ||
      length != bytes.size()) {
    return std::nullopt;
  }
  return bytes;
}

Secret key_of(const Secret& secret, std::string_view text) {
  Secret key{};
  ::crypto_generichash(key.data(), key.size(), reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                       secret.data(), secret.size());
  return key;
}

std::string numbered(std::uint64_t number, std::string_view text) { return fmt::format("{} {}", number, text); }

LinkSeal::Tag tag_of(const Secret& key, std::uint64_t number, std::initializer_list<std::span<const std::byte>> parts) {
  const Secret key_of_message = key_of(key, fmt::format("message {}", number));
  crypto_onetimeauth_state state;
  ::crypto_onetimeauth_init(&state, key_of_message.data());
  for (const auto& part : parts) {
    ::crypto_onetimeauth_update(&state, reinterpret_cast<const unsigned char*>(part.data()), part.size());
  }
  LinkSeal::Tag tag{};
  ::crypto_onetimeauth_final(&state, tag.data());
  return tag;
}

}  // namespace

std::string draw_secret() {
  start_libsodium();
  Secret bytes{};
  ::randombytes_buf(bytes.data(), bytes.size());
  return text_of(bytes);
}

bool is_secret_text(std::string_view text) { return bytes_of(text).has_value(); }

LinkSeal::LinkSeal(std::string_view token, std::string_view listener_challenge, std::string_view caller_challenge,
                   Side own) {
  start_libsodium();
  const std::optional<Secret> secret = bytes_of(token);
  if (!secret) {
    throw Error("cannot connect to other nodes: their token is damaged (a bug). Please report it.");
  }
  const Secret from_listener =
      key_of(*secret, fmt::format("from listener {} {}", listener_challenge, caller_challenge));
  const Secret to_listener = key_of(*secret, fmt::format("to listener {} {}", listener_challenge, caller_challenge));
  outgoing_.key = own == Side::listener ? from_listener : to_listener;
  incoming_.key = own == Side::listener ? to_listener : from_listener;
}

std::string LinkSeal::seal(std::string_view text) {
  const std::string all = numbered(outgoing_.lines++, text);
  SealBytes seal{};
  ::crypto_auth(seal.data(), reinterpret_cast<const unsigned char*>(all.data()), all.size(), outgoing_.key.data());
  return fmt::format("{} {}", text_of(seal), text);
}

std::optional<std::string> LinkSeal::unseal(std::string_view line) {
  if (line.size() < added_length || line[added_length - 1] != ' ') return std::nullopt;
  const std::optional<SealBytes> seal = bytes_of(line.substr(0, added_length - 1));
  const std::string_view text = line.substr(added_length);
  const std::string all = numbered(incoming_.lines, text);
  if (!seal || ::crypto_auth_verify(seal->data(), reinterpret_cast<const unsigned char*>(all.data()), all.size(),
                                    incoming_.key.data()) != 0) {
    return std::nullopt;
  }
  ++incoming_.lines;
  return std::string(text);
}

LinkSeal::Tag LinkSeal::tag(std::initializer_list<std::span<const std::byte>> parts) {
  return tag_of(outgoing_.key, outgoing_.lines++, parts);
}

bool LinkSeal::is_next(const Tag& tag, std::span<const std::byte> message) {
  const Tag expected = tag_of(incoming_.key, incoming_.lines, {message});
  if (::sodium_memcmp(expected.data(), tag.data(), tag.size()) != 0) return false;
  ++incoming_.lines;
  return true;
}

}  // namespace lockstep
