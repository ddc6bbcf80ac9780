#include "sim/operations.h"

#include <algorithm>
#include <memory>

#include <fmt/ranges.h>

#include "base/result.h"

namespace tocsin::sim {
namespace {

constexpr size_t kBudget = 1'000'000;
constexpr int kRoundsMax = 1'000;  // a store that always has more to do now would never sleep

std::string Text(const JobView& job) {
  std::string text = fmt::format(
      "uid {} own '{}' key '{}' state {} due {} trigger {} left {} attempt {}/{} reason '{}' payload {}:{}", job.uid,
      job.own_id, job.key, static_cast<int>(job.state), ToMs(job.due), static_cast<int>(job.trigger), job.count_left,
      job.attempt, job.max_attempts, job.reason, job.payload.size(), job.payload.substr(0, 24));
  for (const HeaderView& header : job.headers) text += fmt::format(" [{}={}]", header.name, header.value);
  text += fmt::format(" created {} last attempt {} died {} finished {}", ToMs(job.created), ToMs(job.last_attempt),
                      ToMs(job.died), ToMs(job.finished));
  if (job.state == State::kLeased) text += fmt::format(" until {}", ToMs(job.lease_deadline));
  return text;
}

/// As a listing shows it.
std::string ListedText(const JobView& job) {
  std::string text = Text(job);
  if (job.state == State::kLeased) {
    text += fmt::format(" since {} extended {} held by '{}'", ToMs(job.leased), job.extensions, job.holder);
  }
  return text;
}

/// One for each part of a selector, with values that the generator makes.
std::vector<Selector> SomeSelectors(Moment now) {
  constexpr Millis kRecently{10'000};
  return {{.states = StateSet::Ready()},
          {.ids = {"id7", "id8", "id9"}},
          {.id_prefix = "id1"},
          {.key = "key1"},
          {.header = "empty"},
          {.header = "name", .header_value = "value"},
          {.payload = "00001"},
          {.reason = "reason 1"},
          {.holder = "consumer 2"},
          {.due = {.from = now.utc, .to = now.utc + kRecently}},
          {.created = {.from = now.utc - kRecently, .to = {}}},
          {.died = {.from = {}, .to = now.utc - kRecently}},
          {.attempts_min = 1, .attempts_max = 1},
          {.states = StateSet::Of(State::kDead), .key = "key2", .payload = "0"}};
}

std::string UidsOf(Store& store, std::string_view topic, const Selector& what, Moment now) {
  std::set<Uid> uids;
  std::string cursor;
  do {
    store.List(topic, what, cursor, {100}, now, [&](Result<Page> page) {
      TOCSIN_CHECK(page.has_value());
      for (const JobView& job : page->jobs.jobs) TOCSIN_CHECK(uids.insert(job.uid).second);  // once
      cursor = page->cursor;
    });
  } while (!cursor.empty());
  return fmt::format("{}", fmt::join(uids, " "));
}

/// An OnReply for a result whose value `show` puts into words.
template <class T, class Show>
Done<T> Answer(OnReply reply, Show show) {
  return [reply = std::move(reply), show = std::move(show)](Result<T> result) mutable {
    if (!result) return reply({false, result.error().message});
    reply({true, show(*result)});
  };
}

template <class Outcome, class Show>
std::string All(const std::vector<Outcome>& outcomes, Show show) {
  std::string text;
  for (const Outcome& outcome : outcomes) text += show(outcome) + "; ";
  return text;
}

Status AdvanceAll(Side& side, Moment now) {
  Status done;
  int rounds = 0;
  for (bool more = true; more;) {
    TOCSIN_CHECK(++rounds < kRoundsMax);
    side.store->Advance(now, kBudget, [&](Result<Advanced> advanced) {
      more = advanced && (advanced->more || advanced->next_steady <= now.steady || advanced->next_utc <= now.utc);
      if (!advanced) {
        done = std::unexpected(std::move(advanced).error());
        return;
      }
      side.announced.insert(advanced->ready.begin(), advanced->ready.end());
      side.next = {advanced->next_utc, advanced->next_steady};
    });
  }
  return done;
}

std::string Figures(const TopicFigures& figures) {
  return fmt::format(
      "topic {} slots {} capacity {}/{} paused {} retention {} version {}: scheduled {} ready {} leased {} dead {} "
      "bytes "
      "{} | recovered {} accepted {} delivered {} acked {} nacked {} expired {} died {} redriven {} cancelled {} "
      "purged "
      "{}\n",
      figures.topic.name, figures.topic.slots, figures.topic.capacity_jobs, figures.topic.capacity_bytes,
      figures.topic.paused, figures.topic.retention.count(), figures.topic.version, figures.scheduled, figures.ready,
      figures.leased, figures.dead, figures.bytes, figures.recovered, figures.accepted, figures.delivered,
      figures.acked, figures.nacked, figures.expired, figures.died, figures.redriven, figures.cancelled,
      figures.purged);
}

template <class Item>
Operation WithParts(Operation operation, Operation (*make)(std::string, std::vector<Item>), const std::string& topic,
                    const std::vector<Item>& items) {
  if (items.size() > 1) {
    for (const Item& item : items) operation.parts.push_back(make(topic, {item}));
  }
  return operation;
}

}  // namespace

NewJob OwnedJob::View() const {
  NewJob job{id, key, timeline, delay, due, trigger, count, max_attempts, on_conflict, {}, payload, slot};
  for (const auto& [name, value] : headers) job.headers.push_back({name, value});
  return job;
}

Operation PutTopic(Topic topic) {
  std::string text = fmt::format("put topic {}", topic.name);
  return {std::move(text), true, [topic = std::move(topic)](Side& side, Moment, OnReply reply) {
            side.store->PutTopic(topic, [reply = std::move(reply)](Status done) {
              reply({done.has_value(), done ? "ok" : done.error().message});
            });
          }};
}

Operation DropTopic(std::string topic) {
  std::string text = fmt::format("drop topic {}", topic);
  return {std::move(text), true, [topic = std::move(topic)](Side& side, Moment, OnReply reply) {
            side.announced.erase(topic);
            side.store->DropTopic(topic, [reply = std::move(reply)](Status done) {
              reply({done.has_value(), done ? "ok" : done.error().message});
            });
          }};
}

Operation Submit(std::string topic, std::vector<OwnedJob> jobs) {
  std::string text = fmt::format("submit to {}:", topic);
  for (const OwnedJob& job : jobs) {
    text += fmt::format(" '{}' key '{}' in {} trigger {} conflict {}", job.id, job.key, job.delay.count(),
                        static_cast<int>(job.trigger), static_cast<int>(job.on_conflict));
  }
  return WithParts({std::move(text), true,
                    [=](Side& side, Moment now, OnReply reply) {
                      std::vector<NewJob> views;
                      for (const OwnedJob& job : jobs) views.push_back(job.View());
                      side.store->Submit(topic, views, now,
                                         Answer<std::vector<Submitted>>(std::move(reply), [](const auto& outcomes) {
                                           return All(outcomes, [](const Submitted& each) {
                                             return fmt::format("{} uid {} due {}", static_cast<int>(each.outcome),
                                                                each.uid, ToMs(each.due));
                                           });
                                         }));
                    }},
                   &Submit, topic, jobs);
}

Operation Claim(std::string topic, size_t max, Millis lease, bool ordered) {
  std::string text = fmt::format("claim {} of {} for {}", max, topic, lease.count());
  return {std::move(text), false, [=](Side& side, Moment now, OnReply reply) {
            if (const Status done = AdvanceAll(side, now); !done) return reply({false, done.error().message});
            const std::string holder = fmt::format("consumer {}", max % 5);
            const JobMax most{.jobs = max, .holder = max % 5 == 0 ? std::string_view() : holder};
            side.store->Claim(topic, most, lease, now, Answer<JobBatch>(std::move(reply), [=, &side](JobBatch& batch) {
                                if (batch.jobs.size() < max) side.announced.erase(topic);
                                if (!ordered) std::ranges::sort(batch.jobs, {}, &JobView::uid);
                                return All(batch.jobs, [&](const JobView& job) {
                                  side.tokens.push_back(job.token);
                                  return (job.due > now.utc ? "early: " : "") + Text(job);
                                });
                              }));
          }};
}

Operation Settle(std::string topic, std::vector<OwnedSettlement> settlements) {
  std::string text = fmt::format("settle in {}:", topic);
  for (const OwnedSettlement& each : settlements) {
    text += fmt::format(" {} of delivery {}", static_cast<int>(each.kind), each.delivery);
  }
  return WithParts(
      {std::move(text), true,
       [=](Side& side, Moment now, OnReply reply) {
         std::vector<Settlement> views;
         for (const OwnedSettlement& each : settlements) {
           if (each.delivery >= side.tokens.size()) return reply({false, "it was not delivered"});
           views.push_back({side.tokens[each.delivery], each.kind, each.delay, each.lease, each.reason});
         }
         side.store->Settle(
             topic, views, now, Answer<std::vector<SettleOutcome>>(std::move(reply), [](const auto& outcomes) {
               return All(outcomes, [](SettleOutcome each) { return std::to_string(static_cast<int>(each)); });
             }));
       }},
      &Settle, topic, settlements);
}

Operation Amend(std::string topic, std::vector<OwnedAmendment> amendments) {
  std::string text = fmt::format("amend in {}:", topic);
  for (const OwnedAmendment& each : amendments)
    text += fmt::format(" {} of '{}'", static_cast<int>(each.kind), each.id);
  return WithParts({std::move(text), true,
                    [=](Side& side, Moment now, OnReply reply) {
                      std::vector<Amendment> views;
                      for (const OwnedAmendment& each : amendments) {
                        views.push_back({.job = {each.id, each.key},
                                         .kind = each.kind,
                                         .timeline = each.timeline,
                                         .delay = each.delay,
                                         .due = each.due,
                                         .max_attempts = each.max_attempts,
                                         .payload = each.payload});
                      }
                      side.store->Amend(
                          topic, views, now, Answer<std::vector<Amended>>(std::move(reply), [](const auto& outcomes) {
                            return All(outcomes, [](const Amended& each) {
                              return fmt::format("{} due {}", static_cast<int>(each.outcome), ToMs(each.due));
                            });
                          }));
                    }},
                   &Amend, topic, amendments);
}

Operation Count(std::string topic, std::vector<OwnedEvent> events) {
  std::string text = fmt::format("count in {}:", topic);
  for (const OwnedEvent& each : events) text += fmt::format(" '{}' by '{}'", each.id, each.event);
  return WithParts({std::move(text), true,
                    [=](Side& side, Moment now, OnReply reply) {
                      std::vector<CountEvent> views;
                      for (const OwnedEvent& each : events) views.push_back({{each.id, each.key}, each.event, each.by});
                      side.store->Count(topic, views, now,
                                        Answer<std::vector<Counted>>(std::move(reply), [](const auto& outcomes) {
                                          return All(outcomes, [](const Counted& each) {
                                            return fmt::format("{} left {}", static_cast<int>(each.outcome), each.left);
                                          });
                                        }));
                    }},
                   &Count, topic, events);
}

Operation Sweep(std::string topic, SweepKind kind, size_t limit) {
  std::string text = fmt::format("sweep {} of {}, {} a call", static_cast<int>(kind), topic, limit);
  return {std::move(text), true, [=](Side& side, Moment now, OnReply reply) {
            // What a call changes is visible at once: the next one need not wait for its answer. The last one changes
            // nothing and answers for all of them.
            size_t jobs = 0;
            for (const TopicFigures& figures : side.store->Topics()) {
              if (figures.topic.name != topic) continue;
              jobs = figures.dead + (kind == SweepKind::kPurge ? figures.scheduled : 0);
            }
            auto total = std::make_shared<size_t>(0);
            for (size_t calls = (jobs + limit - 1) / limit + 1; calls > 0; --calls) {
              side.store->Sweep(topic, kind, {}, limit, now, [total, reply, last = calls == 1](Result<Swept> result) {
                if (result) *total += result->changed;
                if (last) reply({result.has_value(), result ? std::to_string(*total) : result.error().message});
              });
            }
          }};
}

Operation Advance() {
  return {"advance", false, [](Side& side, Moment now, OnReply reply) {
            const Status done = AdvanceAll(side, now);
            reply({done.has_value(), done ? "ok" : done.error().message});
          }};
}

std::string Dump(Store& store, Moment now) {
  std::vector<TopicFigures> topics = store.Topics();
  std::ranges::sort(topics, {}, [](const TopicFigures& figures) { return figures.topic.name; });
  std::string dump;
  for (const TopicFigures& figures : topics) {
    dump += Figures(figures);
    std::vector<std::pair<Uid, std::string>> jobs;
    for (const State state : {State::kScheduled, State::kLeased, State::kDead, State::kDone, State::kCancelled}) {
      std::string cursor;
      do {
        store.List(figures.topic.name, OfState(state), cursor, {1'000}, now, [&](Result<Page> page) {
          TOCSIN_CHECK(page.has_value());
          for (const JobView& job : page->jobs.jobs) jobs.emplace_back(job.uid, ListedText(job));
          cursor = page->cursor;
        });
      } while (!cursor.empty());
    }
    std::ranges::sort(jobs);
    for (const auto& [uid, text] : jobs) dump += "  " + text + "\n";
    const std::vector<Selector> selectors = SomeSelectors(now);
    for (size_t i = 0; i < selectors.size(); ++i) {
      dump += fmt::format("  selector {}: {}\n", i, UidsOf(store, figures.topic.name, selectors[i], now));
    }
  }
  return dump;
}

std::string Difference(const std::string& stored, const std::string& expected) {
  const auto [at, other] = std::ranges::mismatch(stored, expected);
  if (at == stored.end() && other == expected.end()) return "none";
  const auto line = [](const std::string& text, size_t where) {
    const size_t begin = where == 0 ? 0 : text.rfind('\n', where - 1) + 1;
    return text.substr(begin, text.find('\n', where) - begin);
  };
  const auto where = static_cast<size_t>(at - stored.begin());
  return fmt::format("stored:   {}\nexpected: {}", line(stored, where), line(expected, where));
}

}  // namespace tocsin::sim
