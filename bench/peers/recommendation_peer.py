#!/usr/bin/env python3
"""Trains the network of train_recommendation in PyTorch, on the same ratings.

    python3 bench/peers/recommendation_peer.py SHARDS [--passes 10] [--width 32] [--lr 0.001] [--seed 1]

SHARDS was made by `make_shards movielens`. Embeddings are dense, and RMSprop (alpha 0.99) updates all rows. Weights have
the same distributions as there, but other values. Prints the test error of each pass as a JSON list.
"""
import argparse
import json
import pathlib

import h5py
import numpy
import torch
from torch import nn

CONTEXT = 5


def read_split(folder, split):
    parts = [h5py.File(path)["ratings"] for path in sorted(folder.glob(f"{split}-*.h5"))]
    return [torch.from_numpy(numpy.concatenate([part[name][()] for part in parts])) for name in ("user", "movie", "stars")]


class Catalogue:
    def __init__(self, folder):
        with h5py.File(folder / "catalogue.h5") as file:
            features = {name: torch.from_numpy(data[()]) for name, data in file["features"].items()}
            titles = file["titles"][()].tobytes().split(b"\n")[:-1]
        self.classes = [features[f"user.{name}"].long() for name in ("gender", "age", "occupation")]
        self.genres = features["movie.genres"]
        # Characters plus one; 0 is padding. Two more on each side of a title for its windows.
        longest = max(1, *(len(title) for title in titles))
        self.titles = torch.zeros(len(titles), longest + CONTEXT - 1, dtype=torch.long)
        self.lengths = torch.ones(len(titles))
        for row, title in enumerate(titles):
            self.titles[row, CONTEXT // 2:CONTEXT // 2 + len(title)] = torch.tensor(list(title), dtype=torch.long) + 1
            self.lengths[row] = max(1, len(title))


class Network(nn.Module):
    def __init__(self, catalogue, width):
        super().__init__()
        self.catalogue = catalogue
        rows = [len(catalogue.classes[0]), 2, 7, 21]
        self.users = nn.ModuleList(self.embedding(count, width) for count in rows)
        self.user_fcs = nn.ModuleList(nn.Linear(width, width) for _ in rows)
        self.user_fusion = nn.Linear(4 * width, width)
        self.movies = self.embedding(len(catalogue.titles), width)
        self.movie_fc = nn.Linear(width, width)
        self.characters = self.embedding(257, width, padding_idx=0)
        self.title_fc = nn.Linear(CONTEXT * width, width)
        self.genre_fcs = nn.ModuleList([nn.Linear(catalogue.genres.shape[1], width), nn.Linear(width, width)])
        self.movie_fusion = nn.Linear(3 * width, width)

    @staticmethod
    def embedding(rows, width, **options):
        made = nn.Embedding(rows, width, **options)
        with torch.no_grad():
            made.weight *= width ** -0.5
        return made

    def title(self, movie):
        text = self.catalogue.titles[movie]
        longest = int(self.catalogue.lengths[movie].max())
        windows = self.characters(text[:, :longest + CONTEXT - 1]).unfold(1, CONTEXT, 1).transpose(2, 3).flatten(2)
        places = torch.arange(longest) < self.catalogue.lengths[movie][:, None]
        sums = (torch.tanh(self.title_fc(windows)) * places[..., None]).sum(1)
        return sums / self.catalogue.lengths[movie][:, None]

    def forward(self, user, movie):
        ids = [user, *(classes[user] for classes in self.catalogue.classes)]
        parts = [torch.tanh(fc(table(rows))) for table, fc, rows in zip(self.users, self.user_fcs, ids)]
        user_vector = torch.tanh(self.user_fusion(torch.cat(parts, 1)))
        genres = self.catalogue.genres[movie]
        for fc in self.genre_fcs:
            genres = torch.tanh(fc(genres))
        parts = [torch.tanh(self.movie_fc(self.movies(movie))), self.title(movie), genres]
        movie_vector = torch.tanh(self.movie_fusion(torch.cat(parts, 1)))
        return 5 * torch.cosine_similarity(user_vector, movie_vector)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shards", type=pathlib.Path)
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--global-batch", type=int, default=1600)
    parser.add_argument("--lr", type=float, default=0.001)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    network = Network(Catalogue(options.shards), options.width)
    optimizer = torch.optim.RMSprop(network.parameters(), lr=options.lr, alpha=0.99, eps=1e-8)
    (user, movie, stars), test = [read_split(options.shards, split) for split in ("train", "test")]
    errors = []
    for _ in range(options.passes):
        for batch in torch.randperm(len(stars)).split(options.global_batch):
            optimizer.zero_grad()
            loss = (network(user[batch].long(), movie[batch].long()) - (2 * stars[batch] - 5)).square().mean()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            scores = torch.cat([network(u.long(), m.long()) for u, m in zip(test[0].split(1000), test[1].split(1000))])
            errors.append(float((scores - (2 * test[2] - 5)).square().mean()))
    print(json.dumps(errors))


if __name__ == "__main__":
    main()
