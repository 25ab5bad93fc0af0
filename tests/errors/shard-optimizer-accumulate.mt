# mtc --shards 4 --shard-optimizer
data {
  train = idx("images", "labels")
  image : f32[5]
  label : class[10]
}

model {
  scores = linear(image, 10)
}

train {
  loss       = cross_entropy(scores, label)
  optimizer  = adam(0.1)
  accumulate = 4
  clip_norm  = 1
}
