data {
  train = idx("images", "labels")
  image : u8[3, 4, 8]
  label : class[10]
}

model {
  h      = random_crop(image, 4, mode = "reflect")
  scores = linear(flatten(h), 10)
}

train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
}
