data {
  train = idx("images", "labels")
  image : u8[3, 8, 8]
  label : class[10]
}

model {
  turned = random_flip(image, alternate = true)
  seen   = cutout(random_crop(turned, 1), 2) / 255
  other  = transpose(turned, 1, 2)
  twice  = random_flip(seen, alternate = true)
  both   = random_flip(other, alternate = true)
  either = random_flip(seen)
  scores = linear(concat([flatten(twice), flatten(both), flatten(either)], axis = 0), 10)
}

train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
}
